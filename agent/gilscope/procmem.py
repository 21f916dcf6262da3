"""Reads the memory of another process through /proc/PID/mem, without stopping it."""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["ProcessMemory"]

_HIGHEST_ADDRESS = (1 << 63) - 1


class ProcessMemory:
    """The address space that the process has at the moment of opening.

    The file descriptor stays bound to that address space: after the process exits or executes
    another program every read fails, so nothing is ever read from a stranger that got the same pid.
    """

    _range = (0, _HIGHEST_ADDRESS)
    """What may be read without further ado: from the first address up to the second."""

    def __init__(self, pid: int, *, proc: Path = Path("/proc")) -> None:
        """Open the memory of process *pid*; raises OSError when it is gone or not permitted."""
        self._descriptor = os.open(proc / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, address: int, size: int) -> bytes:
        """Return exactly *size* bytes at *address*; raises OSError if any of them is not mapped."""
        low, high = self._range
        if not low <= address <= high - size:
            self._require(address, size)
        content = os.pread(self._descriptor, size, address)
        if len(content) == size:
            return content
        # A read that begins well and runs into a hole is cut; one of a vanished process is empty.
        reason = errno.EFAULT if content else errno.ESRCH
        raise OSError(reason, os.strerror(reason))

    def _require(self, address: int, size: int) -> None:
        """Raise OSError unless *size* bytes at *address* may be read."""
        del address, size
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))

    def fileno(self) -> int:
        """Return the descriptor; what is read there at an address is the memory at it."""
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
