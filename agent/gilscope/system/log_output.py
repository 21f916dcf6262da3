"""Standard error of a service, which must not wait for whoever reads it.

A thread of its own writes. What it has not come to write is kept up to a bound, and counted where
it is given up: a log that nobody reads, or that is on a full disk, stops nothing else.
"""

import contextlib
import io
import os
import sys
import threading
from collections import deque
from typing import Any

from gilscope.system.named_thread import named_thread

__all__ = ["LogOutput", "finish_log_output", "lost_lines", "use_log_output"]

_MOST_BYTES = 256 * 1024
"""Of what waits to be written."""
_FAREWELL_S = 0.5
"""Timeout for the last words."""


class LogOutput(io.RawIOBase):
    """Takes what is written at once, whatever the file behind it does."""

    def __init__(self, descriptor: int, most_bytes: int = _MOST_BYTES) -> None:
        """Write to *descriptor*, keep *most_bytes* at most; raises RuntimeError for no thread."""
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost_lines = 0
        self._change = threading.Condition()
        named_thread("log", self._write_out).start()

    @property
    def lost_lines(self) -> int:
        """How many lines could not be written."""
        return self._lost_lines

    def fileno(self) -> int:
        """Return the descriptor behind it."""
        return self._descriptor

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Any, /) -> int:  # noqa: ANN401 - any buffer
        """Keep *content* to be written, or count what it has of lines."""
        taken = bytes(content)
        with self._change:
            if self._size + len(taken) > self._most_bytes:
                self._lost_lines += taken.count(b"\n")
            else:
                self._waiting.append(taken)
                self._size += len(taken)
                self._change.notify_all()
        return len(taken)

    def finish(self, within_s: float = _FAREWELL_S) -> None:
        """Return when all is written, or when that takes longer than *within_s*."""
        with self._change:
            self._change.wait_for(lambda: self._size == 0, within_s)

    def _write_out(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting)
                chunk = self._waiting.popleft()
            is_lost = not _written(self._descriptor, chunk)
            with self._change:
                self._size -= len(chunk)
                self._lost_lines += chunk.count(b"\n") if is_lost else 0
                self._change.notify_all()


_used: list[LogOutput] = []
"""The one that there is, if any."""


def use_log_output() -> None:
    """Let standard error be a `LogOutput` from now on."""
    with contextlib.suppress(RuntimeError):
        output = LogOutput(sys.stderr.fileno())
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(output),
            encoding=sys.stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )
        _used.append(output)


def finish_log_output() -> None:
    """Give the last words the time to be written."""
    for output in _used:
        sys.stderr.flush()
        output.finish()


def lost_lines() -> int:
    """Return how many lines of the log could not be written since the start."""
    return sum(output.lost_lines for output in _used)


def _written(descriptor: int, chunk: bytes) -> bool:
    """Return whether all of *chunk* could be written, which may take for ever."""
    while chunk:
        try:
            chunk = chunk[os.write(descriptor, chunk) :]
        except OSError:
            return False
    return True
