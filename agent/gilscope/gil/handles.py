"""What holds on to one process: whatever comes after it has the same pid, and is not reached."""

import errno
import os

from gilscope import procfs
from gilscope.errors import NotPermitted, NotPython
from gilscope.guarded_memory import GuardedMemory
from gilscope.shortage import explained_shortage
from gilscope.target import locate

__all__ = ["open_memory", "open_pidfd"]

_NAMES_A_THREAD = {errno.EINVAL, errno.ENOENT}
"""The one or the other, by the kernel's version."""


def open_pidfd(pid: int) -> int:
    """Return a descriptor of process *pid*; raises NotPython where there is none."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise NotPython(f"there is no process {pid}") from error
    except OSError as error:
        if error.errno not in _NAMES_A_THREAD:
            # A seccomp filter, or no descriptor is left.
            known = explained_shortage(error)
            if known is None:
                raise
            raise known from error
        process = procfs.read_status(pid).tgid
        raise NotPython(
            f"{pid} is a thread of process {process}, not a process",
            remedy=f"Trace the process: -p {process}",
        ) from error


def open_memory(pid: int) -> GuardedMemory:
    """Return the memory of the program that *pid* runs; raises NotPython or NotPermitted."""
    try:
        return GuardedMemory(pid)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except PermissionError as error:
        # A process that is no Python is none of gilscope's business, permitted or not.
        locate(pid)
        raise NotPermitted(
            f"not permitted to read the memory of process {pid} ({error.strerror})"
        ) from error
