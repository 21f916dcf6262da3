"""Reads as an attached process has them, and how many of them another thread would do."""

from collections.abc import Callable
from typing import TypeVar

from gilscope.process.reads import DirectReads

__all__ = ["HandedReads"]

_T = TypeVar("_T")


class HandedReads:
    """Does all of them at once, and counts those that are not to be done by who asks."""

    stopped = ""

    def __init__(self) -> None:
        self.over = 0
        self.direct = DirectReads()

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns."""
        self.over += 1
        return read()

    def waited(self, wait_s: float) -> None:
        """Keep no account."""

    def give_up(self) -> None:
        """Have nobody to give up on."""
