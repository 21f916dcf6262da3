"""Reads STM logs from files and from standard input, and says how far it has come."""

import errno
import os
import select
import stat
import sys
from collections.abc import Callable
from io import FileIO

from gilscope.errors import NotAnStmLog
from gilscope.model.stm_log import LogFile
from gilscope.stm_log.log_file import NoLogFileError, open_log_file
from gilscope.stm_log.reader import LogReader, Reading

__all__ = ["STANDARD_INPUT", "Progress", "read_log"]

STANDARD_INPUT = "-"

_PIECE_BYTES = 1 << 18
"""What stays in the cache of a processor between being read and being understood."""
_NOTHING = memoryview(bytes(_PIECE_BYTES))
_WRITER_PATIENCE_S = 5.0
"""For something to open the other end of a pipe."""

Progress = Callable[[int, int | None], None]
"""Is told how many bytes have been read, and how many there are, if that is known."""


def read_log(name: str, reading: Reading, progress: Progress) -> LogFile:
    """Return what is in the log *name*, or on standard input if it is ``-``; raises NotAnStmLog.

    A log is a regular file or a pipe. What is none is not read to its end, and not even opened if
    it is neither. With the original's figures a file is read a second time, because the original
    knows the end of the time line before it draws.
    """
    try:
        with _opened(name) as source:
            file = _read(source, LogReader(name, reading), progress)
            if reading.is_original and file.logs and source.seekable():
                source.seek(0)
                file = _read(source, LogReader(name, reading, file.logs), progress)
            return file
    except NoLogFileError as error:
        raise NotAnStmLog(f"cannot read {name}: {error}") from error
    except OSError as error:
        raise NotAnStmLog(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise NotAnStmLog(f"{name} {error}") from error


def _opened(name: str) -> FileIO:
    if name == STANDARD_INPUT:
        return FileIO(sys.stdin.fileno(), closefd=False)
    descriptor, _ = open_log_file(name, takes_pipes=True)
    return FileIO(descriptor)


def _read(source: FileIO, reader: LogReader, progress: Progress) -> LogFile:
    piece = memoryview(bytearray(_PIECE_BYTES))
    size, done = _size(source), 0
    while True:
        content = _NOTHING[: _skip_hole(source, size)]
        if not content:
            content = piece[: _read_piece(source, piece, is_first=not done)]
        if not (count := len(content)):
            break
        is_log = reader.feed(content)
        done += count
        progress(done, size)
        if not is_log:
            break
    reader.finish()
    file = reader.snapshot()
    if not file.size:
        raise ValueError("is empty: a process writes its log in blocks of 4096 bytes")
    return file


def _skip_hole(source: FileIO, size: int | None) -> int:
    """Go to the end of the hole where *source* is, or on by a piece, and return how far that is.

    Nothing is read there: to have gigabytes of zeros made would take as long as to read them.
    """
    if not size:
        return 0
    at = source.tell()
    try:
        behind = source.seek(at, os.SEEK_DATA)
    except OSError:
        # Up to its end, or the file system does not know; then the zeros are read.
        behind = size if _ends_in_hole(source, at) else at
    return source.seek(at + min(max(0, behind - at), _PIECE_BYTES)) - at


def _ends_in_hole(source: FileIO, at: int) -> bool:
    try:
        return source.seek(at, os.SEEK_HOLE) == at
    except OSError:
        return False


def _read_piece(source: FileIO, piece: memoryview, *, is_first: bool) -> int:
    """Return how many bytes of *piece* were filled, 0 at the end of *source*."""
    count = source.readinto(piece)
    if count == 0 and is_first and _is_pipe(source):
        # Nothing has opened its other end yet, or is gone again already.
        if not _wait(source, _WRITER_PATIENCE_S):
            raise NoLogFileError(
                f"it is a pipe, and for {_WRITER_PATIENCE_S:g} s nothing has opened it to write"
            )
        count = source.readinto(piece)
    while count is None:
        if _size(source) is not None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        _wait(source, None)
        count = source.readinto(piece)
    return count


def _wait(source: FileIO, timeout_s: float | None) -> bool:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


def _is_pipe(source: FileIO) -> bool:
    return stat.S_ISFIFO(os.fstat(source.fileno()).st_mode)


def _size(source: FileIO) -> int | None:
    status = os.fstat(source.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
