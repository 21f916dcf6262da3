"""Says on a terminal how far something has come that takes long."""

import os
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
        self._is_wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began_s = time.monotonic()
        self._next_s = self._began_s + _QUIET_S
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()

    def wipe(self) -> None:
        """Let something else be written; the line comes again."""
        if self._is_shown:
            self._is_shown = False
            self._write("\r\033[K")

    def tell_time(self, whole_s: float | None) -> None:
        """Say for how long it has been going, of *whole_s* if that is known."""
        now_s = time.monotonic()
        if self._is_due(now_s):
            whole = "" if whole_s is None else f" of {whole_s:.0f} s"
            self._show(f"{self._words}: {now_s - self._began_s:.0f} s{whole}", now_s)

    def tell(self, done: int, whole: int | None) -> None:
        """Say that *done* bytes of *whole*, if that is known, have been dealt with."""
        now_s = time.monotonic()
        if self._is_due(now_s):
            speed = done / _BYTES_PER_MB / (now_s - self._began_s)
            share = f"{100 * done // whole} %" if whole else f"{done // _BYTES_PER_MB} MB"
            self._show(f"{self._words}: {share}, {speed:.0f} MB/s", now_s)

    def _is_due(self, now_s: float) -> bool:
        return self._is_wanted and now_s >= self._next_s

    def _show(self, words: str, now_s: float) -> None:
        self._next_s = now_s + _PAUSE_S
        self._is_shown = True
        self._write(f"\r\033[K{words}")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
