"""Reads the lock of a CPython 2.7 out of made-up memory."""

import struct

import pytest

from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython27.lock import LOCK_WORD, is_held, semaphore

_POINTER, _SEMAPHORE = 0x1000, 0x2000


class _Memory:
    """A pointer to a semaphore with this value and so many waiters."""

    def __init__(self, pointer: int, value: int = 0, waiters: int = 0) -> None:
        self._words = {_POINTER: pointer, _SEMAPHORE: waiters << 32 | value}

    def read(self, address: int, size: int) -> bytes:
        return struct.pack("<Q", self._words[address])[:size]


def test_there_is_no_lock_before_the_first_thread() -> None:
    """
    The pointer is NULL until then.
    """
    assert semaphore(_Memory(0), _POINTER) is None
    assert _SEMAPHORE == semaphore(_Memory(_SEMAPHORE), _POINTER)


def test_a_pointer_that_cannot_be_one_is_torn() -> None:
    """
    No structure lies at such an address.
    """
    with pytest.raises(TornRead):
        semaphore(_Memory(_SEMAPHORE + 1), _POINTER)


@pytest.mark.parametrize(("value", "held"), [(0, True), (1, False)])
def test_the_low_half_says_whether_it_is_held(value: int, held: bool) -> None:  # noqa: FBT001
    """
    However many threads wait for it.
    """
    for waiters in (0, 1, 7):
        memory = _Memory(_SEMAPHORE, value, waiters)
        found = int.from_bytes(memory.read(_SEMAPHORE + LOCK_WORD.offset, LOCK_WORD.size), "little")

        assert held is is_held(memory, _SEMAPHORE)
        assert held is ((found == LOCK_WORD.value) is LOCK_WORD.is_held_if_equal)
