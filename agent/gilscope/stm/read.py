"""Reads STM logs from files and from standard input, and says how far it has come."""

import os
import stat
import sys
from collections.abc import Callable
from io import FileIO

from gilscope.errors import NotAnStmLog
from gilscope.stm.log import LogReader, Reading
from gilscope.stm.model import LogFile

__all__ = ["STANDARD_INPUT", "Progress", "read_log"]

STANDARD_INPUT = "-"

_PIECE_BYTES = 1 << 18
"""What stays in the cache of a processor between being read and being understood."""

Progress = Callable[[int, int | None], None]
"""Is told how many bytes have been read, and how many there are, if that is known."""


def read_log(name: str, reading: Reading, progress: Progress) -> LogFile:
    """Return what is in the log *name*, or on standard input if it is ``-``; raises NotAnStmLog.

    With the original's figures a file is read a second time, because the original knows the end of
    the time line before it draws.
    """
    try:
        with _opened(name) as source:
            file = _read(source, LogReader(name, reading), progress)
            if reading.is_original and file.logs and source.seekable():
                source.seek(0)
                file = _read(source, LogReader(name, reading, file.logs), progress)
            return file
    except OSError as error:
        raise NotAnStmLog(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise NotAnStmLog(f"{name} {error}") from error


def _opened(name: str) -> FileIO:
    if name == STANDARD_INPUT:
        return FileIO(sys.stdin.fileno(), closefd=False)
    return FileIO(name)


def _read(source: FileIO, reader: LogReader, progress: Progress) -> LogFile:
    piece = memoryview(bytearray(_PIECE_BYTES))
    size, done = _size(source), 0
    while count := source.readinto(piece):
        reader.feed(piece[:count])
        done += count
        progress(done, size)
    reader.finish()
    file = reader.snapshot()
    if not file.size:
        raise ValueError("is empty: a process writes its log in blocks of 4096 bytes")
    return file


def _size(source: FileIO) -> int | None:
    status = os.fstat(source.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
