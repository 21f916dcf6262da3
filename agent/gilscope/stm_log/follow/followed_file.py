"""One STM log that is open and grows."""

import os
import time

from gilscope.model.stm_log import LogFile
from gilscope.stm_log.follow.rewritten import BEGINNING_BYTES, Step, next_step
from gilscope.stm_log.reader import LogReader, is_log
from gilscope.stm_log.sums import LogSums, sums_of

__all__ = ["PIECE_BYTES", "FollowedFile", "Identity"]

PIECE_BYTES = 1 << 18
"""What stays in the cache of a processor between being read and being understood."""

_HEADER_BYTES = 16

Identity = tuple[int, int]
"""Device and inode: what stays the same when a file is renamed."""


class FollowedFile:
    """A file, whatever its name is by now, and what has been read of the log in it."""

    def __init__(self, path: str, descriptor: int, status: os.stat_result) -> None:
        """Begin with the open file *descriptor*, of which *status* tells."""
        self.path = path
        self.identity: Identity = (status.st_dev, status.st_ino)
        self.watch: int | None = None
        self.has_name = True
        """It is still found under a name."""
        self.size = 0
        self.links = status.st_nlink
        self.grew_ns = time.monotonic_ns()
        self.is_refused = False
        """It holds something else than an STM log."""
        self._descriptor = descriptor
        self._reader = LogReader(path)
        self.position = 0
        self._fed_bytes = 0
        self._known = b""
        self._sums = LogSums()
        self._has_more = False
        """Than these sums tell."""

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    @property
    def lag_bytes(self) -> int:
        """What was there when it was measured, and has not been read."""
        return 0 if self.is_refused else max(0, self.size - self.position)

    def measure(self) -> int:
        """Return its size now; raises OSError."""
        status = os.fstat(self._descriptor)
        if status.st_size != self.size:
            self.grew_ns = time.monotonic_ns()
        self.size, self.links = status.st_size, status.st_nlink
        return self.size

    def look(self) -> Step:
        """Return what is to be done now; raises OSError."""
        self.measure()
        beginning = os.pread(self._descriptor, BEGINNING_BYTES, 0)
        step = next_step(self.position, self._known, self.size, beginning)
        if self._fed_bytes:
            if step is Step.REWIND:
                self.position, self._known = 0, beginning
            return step
        # Of a header that is not there as a whole nothing can be said.
        if step is Step.WAIT or self.size < _HEADER_BYTES:
            return Step.WAIT
        self._known = beginning
        self.is_refused = not is_log(beginning)
        return Step.WAIT if self.is_refused else Step.READ

    def read(self, piece: memoryview) -> int:
        """Take what follows, as much as *piece* holds, and return how much; raises OSError."""
        count = os.preadv(self._descriptor, [piece], self.position)
        if count:
            self._reader.feed(piece[:count])
            if len(self._known) < BEGINNING_BYTES and self.position == len(self._known):
                self._known += bytes(piece[: min(count, BEGINNING_BYTES - len(self._known))])
            self.position += count
            self._fed_bytes += count
            self._has_more = True
        return count

    def sums(self) -> LogSums:
        """Return what is in the log so far; never less than it returned before."""
        if self._has_more:
            self._sums = sums_of(self._reader.sums()).at_least(self._sums)
            self._has_more = False
        return self._sums

    def end_log(self) -> tuple[LogFile, LogSums] | None:
        """Return the log that was read, which is at its end, and its sums; begin another at 0.

        It is None where nothing was read.
        """
        ended = None
        if self._fed_bytes:
            self._reader.finish()
            file = self._reader.snapshot()
            ended = file, sums_of(file).at_least(self._sums)
        self._reader = LogReader(self.path)
        self.position = self._fed_bytes = 0
        self._known = b""
        self._sums = LogSums()
        self._has_more = self.is_refused = False
        return ended

    def close(self) -> None:
        """Give the file up."""
        os.close(self._descriptor)
