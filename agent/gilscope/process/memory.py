"""Reads the memory of another process, without stopping it.

With `process_vm_readv`, see `agent/native/remote_memory/remote.h`: who reads /proc/PID/mem keeps
the address space locked until a page has come, however long that takes. A read takes 1.1 to 1.4 us,
and by that way 0.7 to 1.0.
"""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from gilscope.process._remote_memory import read

__all__ = ["ProcessMemory"]

_HIGHEST_ADDRESS = (1 << 63) - 1
_NEVER_MAPPED = _HIGHEST_ADDRESS & -4096
"""A read there ends where the file ends for a process that has gone, and else in an error."""


class ProcessMemory:
    """The address space that the process has at the moment of opening.

    Reads are bound to that address space: after the process exits or executes another program
    every one fails, so nothing is ever read from another process that got the same pid.
    """

    _range = (0, _HIGHEST_ADDRESS)
    """What may be read without further ado: from the first address up to the second."""
    _is_given_up = False

    def __init__(self, pid: int, *, proc: Path = Path("/proc")) -> None:
        """Open the memory of process *pid*; raises OSError when it is gone or not permitted."""
        self._descriptor = os.open(proc / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
        self._pid = pid
        self.thread_id = pid
        """A thread of it that has not ended, as far as is known: memory is read through one."""

    def read(self, address: int, size: int) -> bytes:
        """Return exactly *size* bytes at *address*; raises OSError if any of them is not mapped."""
        low, high = self._range
        if not low <= address <= high - size:
            self._require(address, size)
        content, self.thread_id = read(self._pid, self.thread_id, self._descriptor, address, size)
        return content

    @property
    def is_there(self) -> bool:
        """Whether the process still has this address space; no page of it is read."""
        try:
            return bool(os.pread(self._descriptor, 1, _NEVER_MAPPED))
        except OSError as error:
            return error.errno == errno.EIO

    def give_up(self) -> None:
        """Let all further reads fail as if the process had gone: whoever waits for one ends."""
        self._range = (1, 0)
        self._is_given_up = True

    def _require(self, address: int, size: int) -> None:
        """Raise OSError unless *size* bytes at *address* may be read."""
        del address, size
        reason = errno.ESRCH if self._is_given_up else errno.EFAULT
        raise OSError(reason, os.strerror(reason))

    def fileno(self) -> int:
        """Return the descriptor of /proc/PID/mem."""
        return self._descriptor

    def close(self) -> None:
        """Release the file descriptor; further reads fail."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
