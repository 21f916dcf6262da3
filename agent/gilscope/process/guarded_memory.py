"""Reads the memory of a process, but nothing that somebody else would have to deliver.

A page of a mapped file may come from a program (FUSE) or over a network that never answers, and who
reads it waits for ever, beyond the reach of signals. What Python keeps lies in memory of its own,
or in the file of the interpreter, which has been examined.
"""

import bisect
import errno
import functools
import os
import time
from array import array
from collections.abc import Iterable
from pathlib import Path

from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import Mapping, own_memory_ranges

__all__ = ["GuardedMemory"]

_BURST, _PER_S = 100, 20
"""How often the mappings are read again: a process may make new ones, and false addresses."""


class GuardedMemory(ProcessMemory):
    """Memory of which parts are read that nobody has to be waited for."""

    def __init__(
        self, pid: int, files: Iterable[Mapping] = (), *, proc: Path = Path("/proc")
    ) -> None:
        """Open the memory of *pid*; of mapped files only *files* are read.

        Raises OSError when it is gone or not permitted.
        """
        super().__init__(pid, proc=proc)
        self._maps = proc / str(pid) / "maps"
        self._files = {(mapping.device, mapping.inode) for mapping in files}
        self._starts = self._ends = array("Q")
        self._range = (1, 0)
        self._left = float(_BURST)
        self._counted_s = time.monotonic()

    def allow(self, file: Mapping) -> None:
        """Read *file*, which has been examined, too."""
        identity = file.device, file.inode
        if identity not in self._files:
            self._files.add(identity)
            self._refresh()

    def _require(self, address: int, size: int) -> None:
        if self._is_given_up:
            super()._require(address, size)
        if self._find(address, size):
            return
        if self._may_refresh():
            self._refresh()
            if self._find(address, size):
                return
        # A process that has ended maps nothing.
        reason = errno.EFAULT if self._starts else errno.ESRCH
        raise OSError(reason, os.strerror(reason))

    def _find(self, address: int, size: int) -> bool:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or not 0 <= size <= self._ends[at] - address:
            return False
        self._range = (self._starts[at], self._ends[at])
        return True

    def _refresh(self) -> None:
        ranges = own_memory_ranges(
            self._maps.read_bytes(), self._files | {(_shared_memory(), None)}
        )
        self._starts = array("Q", (start for start, _ in ranges))
        self._ends = array("Q", (end for _, end in ranges))
        self._range = (1, 0)

    def _may_refresh(self) -> bool:
        now_s = time.monotonic()
        self._left = min(_BURST, self._left + (now_s - self._counted_s) * _PER_S)
        self._counted_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


@functools.cache
def _shared_memory() -> int:
    """Return the device of shared memory that has no name: the kernel's own, without a program."""
    try:
        descriptor = os.memfd_create("gilscope")
    except OSError:
        return 0  # no device: then it is not read
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)
