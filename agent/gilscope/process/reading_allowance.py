"""Bounds the agent's own time that reading the memory of one process may cost."""

import time
from collections.abc import Callable
from typing import TypeVar

from gilscope.text.units import NS_PER_S

__all__ = ["ReadingAllowance"]

_T = TypeVar("_T")

_MOST_S = 5.0
_PER_S = 0.05


class ReadingAllowance:
    """So much at once, and a twentieth of the time in the long run.

    A process decides itself how much there is to read of it. One that has more than that is not
    worth being followed: others are kept waiting meanwhile.
    """

    def __init__(self, now_s: float | None = None) -> None:
        self._left_s = _MOST_S
        self._at_s = time.monotonic() if now_s is None else now_s

    @property
    def is_used_up(self) -> bool:
        """Whether reading has cost more than it may."""
        return self._left_s < 0

    def spend(self, cpu_s: float, now_s: float) -> None:
        """Take note that until *now_s*, on the monotonic clock, *cpu_s* more were used."""
        self._left_s = min(_MOST_S, self._left_s + (now_s - self._at_s) * _PER_S) - cpu_s
        self._at_s = now_s

    def waited(self, wait_s: float) -> None:
        """Take note that memory was waited for: whoever else is traced has waited, too."""
        self.spend(wait_s, time.monotonic())

    def counted(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns, and count the CPU time that it takes of this thread."""
        begin_ns = time.thread_time_ns()
        try:
            return read()
        finally:
            used_ns = time.thread_time_ns() - begin_ns
            self.spend(used_ns / NS_PER_S, time.monotonic())

    def __str__(self) -> str:
        return (
            f"reading its memory takes more of gilscope's time than {_MOST_S:g} s at once "
            f"and {_PER_S:.0%} in the long run"
        )
