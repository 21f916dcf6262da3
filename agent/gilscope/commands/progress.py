"""Says on a terminal how far something has come that takes long."""

import sys
import time
from typing import Self

__all__ = ["Progress"]

_QUIET_S = 0.5
"""What takes no longer is done before anybody could read about it."""
_PAUSE_S = 0.2
_BYTES_PER_MB = 1_000_000


class Progress:
    """A line on stderr that is wiped away at the end; nothing where that is no terminal."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._is_wanted = sys.stderr.isatty()
        self._began_s = time.monotonic()
        self._next_s = self._began_s + _QUIET_S
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._write("\r\033[K")

    def tell(self, done: int, whole: int | None) -> None:
        """Say that *done* bytes of *whole*, if that is known, have been dealt with."""
        now_s = time.monotonic()
        if not self._is_wanted or now_s < self._next_s:
            return
        self._next_s = now_s + _PAUSE_S
        self._is_shown = True
        speed = done / _BYTES_PER_MB / (now_s - self._began_s)
        share = f"{100 * done // whole} %" if whole else f"{done // _BYTES_PER_MB} MB"
        self._write(f"\r\033[K{self._words}: {share}, {speed:.0f} MB/s")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
