"""The limit of locked memory, which maps count against before Linux 5.11."""

import errno
import os
import resource
from collections.abc import Callable, Iterator

import pytest

from gilscope.bpf.locked_memory import with_locked_memory

_LITTLE = 1 << 16


@pytest.fixture(autouse=True)
def little() -> Iterator[int]:
    """Have next to no locked memory, which may be raised."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if before[1] != resource.RLIM_INFINITY and before[1] <= _LITTLE:
        pytest.skip(f"the limit of locked memory is {before[1]} bytes and cannot be raised")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (_LITTLE, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]


def _refused(number: int) -> Callable[[], int]:
    """Return what is refused with so little, and returns the limit otherwise."""

    def make() -> int:
        if _limit() == _LITTLE:
            raise PermissionError(number, os.strerror(number))
        return _limit()

    return make


def test_the_limit_is_raised_for_what_is_refused() -> None:
    """
    As far as it goes, and for as long as that takes: a command that is traced inherits nothing.
    """
    made = with_locked_memory(_refused(errno.EPERM))

    assert made == resource.RLIM_INFINITY or made > _LITTLE
    assert _LITTLE == _limit()


def test_it_is_raised_for_nothing_else() -> None:
    """
    What is made at once, and what is refused for another reason.
    """
    assert _LITTLE == with_locked_memory(_limit)
    with pytest.raises(PermissionError) as refusal:
        with_locked_memory(_refused(errno.EACCES))
    assert errno.EACCES == refusal.value.errno


def test_what_is_refused_all_the_same_is_told() -> None:
    """
    And the limit is what it was.
    """

    def make() -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with pytest.raises(PermissionError):
        with_locked_memory(make)
    assert _LITTLE == _limit()
