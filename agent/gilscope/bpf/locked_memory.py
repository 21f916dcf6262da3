"""Has maps made where they count as locked memory, of which most may have next to nothing.

That is so before Linux 5.11.
"""

import contextlib
import errno
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["with_locked_memory"]

_Made = TypeVar("_Made")
_raising = threading.Lock()


def with_locked_memory(make: Callable[[], _Made]) -> _Made:
    """Return what *make* returns, with a higher limit if it is refused; raises what it raises.

    It must leave nothing behind when it is refused.
    """
    try:
        return make()
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        # One at a time: the limit is that of all threads.
        with _raising, _higher_limit(error):
            return make()


@contextmanager
def _higher_limit(refusal: OSError) -> Iterator[None]:
    """Raise the limit inside of the block as far as it may be; raises *refusal* if it may not."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    for most in (resource.RLIM_INFINITY, before[1]):
        # To raise the upper limit takes CAP_SYS_RESOURCE, which gilscope does not ask for.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
            break
    if resource.getrlimit(resource.RLIMIT_MEMLOCK) == before:
        raise refusal
    try:
        yield
    finally:
        # A command that is started and traced must not inherit it.
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
