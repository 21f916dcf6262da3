"""Says in words what the kernel refuses to the agent itself: memory, files, threads, calls."""

import errno
import resource
from types import TracebackType

from gilscope.errors import GilscopeError, KernelOrBccMissing, LimitReached, NotPermitted

__all__ = ["explained_loading", "explained_shortage", "low_limits"]

_MB = 1_000_000
_FEW_FILES = 256
_NO_THREAD = "can't start new thread"
"""All that Python says of it: there is no number to tell it by."""
_SHORT = {errno.ENOMEM, errno.EAGAIN}
_REFUSED = {errno.EPERM, errno.EACCES}


def explained_shortage(error: BaseException) -> GilscopeError | None:
    """Return what *error* means for a user, None where it is no lack of anything.

    That is LimitReached for memory, open files and threads, NotPermitted or KernelOrBccMissing for
    a system call that a security policy forbids or that the kernel does not know.
    """
    if isinstance(error, MemoryError) or _is_no_room_for_a_library(error):
        return LimitReached(f"memory is short{_limits()}")
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return LimitReached(
            f"no thread can be started: memory{_limits()} or the number of threads (RLIMIT_NPROC, "
            "pids of a control group) is short, or a seccomp filter forbids clone3"
        )
    if isinstance(error, OSError):
        return _explained_refusal(error)
    return None


def explained_loading(error: Exception) -> GilscopeError | None:
    """Return what it means that gilscope's modules cannot be imported, as `explained_shortage`.

    Where the address space is limited that is what is short: Python, which has no memory for its
    next step, calls correct source a SyntaxError, or ends in a SystemError or ValueError.
    """
    known = explained_shortage(error)
    if known is None and _is_limited() and not isinstance(error, ModuleNotFoundError):
        known = LimitReached(f"memory is short{_limits()}")
    return known


def low_limits() -> str:
    """Return the limits of this process that may be too low, as ``NAME is N``; empty: none is."""
    found = []
    for kind, name, unit, words in (
        (resource.RLIMIT_AS, "RLIMIT_AS (ulimit -v)", _MB, " MB"),
        (resource.RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)", _MB, " MB"),
        (resource.RLIMIT_NOFILE, "RLIMIT_NOFILE (ulimit -n)", 1, ""),
    ):
        limit, _ = resource.getrlimit(kind)
        is_low = limit < _FEW_FILES if kind == resource.RLIMIT_NOFILE else True
        if limit != resource.RLIM_INFINITY and is_low:
            found.append(f"{name} is {limit // unit}{words}")
    return ", ".join(found)


def _limits() -> str:
    limits = low_limits()
    return f" ({limits})" if limits else ""


def _is_limited() -> bool:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit != resource.RLIM_INFINITY


def _is_no_room_for_a_library(error: BaseException) -> bool:
    # The loader of shared objects says why in words only; without a limit it is no lack of memory.
    is_missing = isinstance(error, ModuleNotFoundError)
    return isinstance(error, ImportError) and not is_missing and _is_limited()


def _explained_refusal(error: OSError) -> GilscopeError | None:
    reason = error.strerror or str(error)
    found: GilscopeError | None = None
    if error.errno == errno.EMFILE:
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        found = LimitReached(
            f"too many open files: this process may have {most} (RLIMIT_NOFILE)",
            remedy="Raise the limit: ulimit -n, or LimitNOFILE= of a service.",
        )
    elif error.errno == errno.ENFILE:
        found = LimitReached("this machine has too many open files (fs.file-max)")
    elif error.errno in _SHORT:
        found = LimitReached(f"memory or another resource is short: {reason}{_limits()}")
    elif error.filename is None and error.errno in _REFUSED:
        found = NotPermitted(
            f"the kernel forbids a system call that gilscope needs, in {_place(error)}: {reason}",
            remedy="A seccomp filter or a security module forbids it: `gilscope doctor` tries the "
            "calls, and docs/security.md says which are needed.",
        )
    elif error.filename is None and error.errno == errno.ENOSYS:
        found = KernelOrBccMissing(
            "the kernel does not know a system call that gilscope needs, or a seccomp filter "
            f"hides it, in {_place(error)}: {reason}"
        )
    return found


def _place(error: OSError) -> str:
    """Return the innermost function of gilscope's own that *error* has passed."""
    found = "gilscope"
    step: TracebackType | None = error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == "gilscope":
            found = f"{module}.{step.tb_frame.f_code.co_qualname}"
        step = step.tb_next
    return found
