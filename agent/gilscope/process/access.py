"""Says in words why a process cannot be read: it is gone, is changing, or is closed to gilscope."""

import contextlib
import errno
from collections.abc import Iterator

from gilscope.errors import GilscopeError, MemoryUnanswered, NotPermitted, NotPython
from gilscope.process import procfs
from gilscope.process.memory_reader import ReadUnanswered

__all__ = ["answering", "not_a_process", "readable", "while_alive"]

_CHANGING = (errno.ESRCH, errno.ENOENT, errno.EFAULT, errno.EIO)
"""What reading a process that is replacing its program ends in."""


@contextlib.contextmanager
def readable(pid: int) -> Iterator[None]:
    """Raise NotPython or NotPermitted for what reading process *pid* ends in."""
    try:
        yield
    except PermissionError as error:
        raise NotPermitted(
            f"not permitted to inspect process {pid} ({error.strerror})",
            remedy="Run as root, or grant CAP_SYS_PTRACE, and for a process of another user "
            f"CAP_DAC_READ_SEARCH as well. `gilscope doctor -p {pid}` tells which is missing.",
        ) from error
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except OSError as error:
        if error.errno not in _CHANGING:
            raise
        raise NotPython(
            f"process {pid} changed while gilscope inspected it ({error})",
            remedy="It may be replacing its program: try again.",
        ) from error


def not_a_process(tid: int, pid: int) -> NotPython:
    """Return what says that *tid* is a thread of process *pid*."""
    return NotPython(
        f"{tid} is a thread of process {pid}, not a process",
        remedy=f"Trace the process: -p {pid}",
    )


@contextlib.contextmanager
def answering(pid: int) -> Iterator[None]:
    """Raise MemoryUnanswered where memory of process *pid* does not answer."""
    try:
        yield
    except ReadUnanswered as error:
        raise MemoryUnanswered(f"the memory of process {pid} does not answer") from error


@contextlib.contextmanager
def while_alive(pid: int) -> Iterator[None]:
    """Raise NotPython for whatever fails because process *pid* ends or changes meanwhile."""
    try:
        with answering(pid):
            yield
    except (NotPython, MemoryUnanswered):
        raise
    except (OSError, GilscopeError) as error:
        if procfs.is_ending(pid):
            raise NotPython(f"process {pid} ended while gilscope inspected it") from error
        if isinstance(error, GilscopeError) or error.errno not in _CHANGING:
            raise
        raise NotPython(
            f"process {pid} changed while gilscope inspected it ({error})",
            remedy="It may be replacing its program: try again.",
        ) from error
