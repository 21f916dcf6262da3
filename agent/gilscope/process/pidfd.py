"""Holds on to one process: whatever comes after it has the same pid, and is not reached."""

import errno
import os

from gilscope.errors import NotPython
from gilscope.process import procfs
from gilscope.process.access import not_a_process
from gilscope.system.shortage import explained_shortage

__all__ = ["open_pidfd"]


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
        raise not_a_process(pid, procfs.read_status(pid).tgid) from error
