"""The file of ``--keep-counters``: what one agent has counted, until the next one continues it."""

import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from gilscope.errors import CountersNotKept
from gilscope.exporter.kept_counters import KeptCounters
from gilscope.text.printable import printable

__all__ = ["KeptFile", "kept_counters"]

_log = logging.getLogger(__name__)

_HEAD: Final = "gilscope counters 1\n"
"""So that no file of something else is ever written over."""
_IN_USE: Final = "in use\n"
"""An agent that does not come to its end leaves this: the next one's counters begin at 0."""
_MOST_BYTES: Final = 64 << 20
"""Of more than that the end is missing, and it cannot be read."""


class KeptFile:
    """The counters that are continued, and the file that they are left in."""

    def __init__(self, fd: int, path: str, began_ns: int) -> None:
        """Continue what the file has; raises CountersNotKept where it is of something else."""
        self._fd = fd
        self._path = path
        self._is_told = False
        text = _read(fd, path)
        try:
            self.counters = KeptCounters(text, began_ns, time.time_ns, self._take_over)
        except ValueError as error:
            _log.warning("counters begin at 0: %s cannot be read: %s", printable(path), error)
            self.counters = KeptCounters("", began_ns, time.time_ns, self._take_over)

    def leave(self) -> None:
        """Leave the counters for the next agent; nobody is told anything any more."""
        if self._is_told:
            self._write(self.counters.dumped())
            self._is_told = False

    def _take_over(self) -> bool:
        self._is_told = True
        return self._write(_IN_USE)

    def _write(self, text: str) -> bool:
        try:
            _write(self._fd, _HEAD + text)
        except OSError as error:
            _log.warning(
                "cannot keep the counters in %s, and they begin at 0: %s",
                printable(self._path),
                error.strerror,
            )
            return False
        return True


@contextmanager
def kept_counters(path: str | None, began_ns: int) -> Iterator[KeptFile | None]:
    """Yield what continues the counters in the file at *path*, and leave them there at the end.

    None where there is no *path*. This agent has begun at *began_ns*, of the epoch. Raises
    CountersNotKept where the file is of something else, or another agent's.
    """
    if path is None:
        yield None
        return
    fd = _opened(path)
    try:
        kept = KeptFile(fd, path, began_ns)
        try:
            yield kept
        finally:
            kept.leave()
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    """Return the file, which nobody else has; raises CountersNotKept."""
    with ExitStack() as undo:
        try:
            # A pipe would keep who opens it waiting.
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
            undo.callback(os.close, fd)
            is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        except OSError as error:
            raise CountersNotKept(f"cannot open {path}: {error.strerror}") from error
        if not is_file:
            raise CountersNotKept(f"{path} is no regular file")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CountersNotKept(
                f"another gilscope keeps its counters in {path}", remedy="Give each its own file."
            ) from error
        except OSError as error:
            raise CountersNotKept(f"cannot lock {path}: {error.strerror}") from error
        undo.pop_all()
    return fd


def _read(fd: int, path: str) -> str:
    """Return what the last agent has left, or ''; raises CountersNotKept."""
    found = os.pread(fd, _MOST_BYTES, 0)
    head = _HEAD.encode()
    if not found.startswith(head):
        # What a power failure leaves of a file that was being written is nobody else's.
        if found.strip(b"\0") and not head.startswith(found):
            raise CountersNotKept(f"{path} is no file of gilscope's counters, and stays as it is")
        return ""
    text = found.decode(errors="replace").removeprefix(_HEAD)
    if text == _IN_USE:
        _log.warning("counters begin at 0: the last gilscope was killed before it could keep them")
        return ""
    return text


def _write(fd: int, text: str) -> None:
    # In place: the lock is on this file, and what is cut short is known as such.
    os.ftruncate(fd, 0)
    encoded = text.encode()
    written = 0
    while written < len(encoded):
        written += os.pwrite(fd, encoded[written:], written)
    os.fsync(fd)
