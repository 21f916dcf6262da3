"""Who owns a mutex."""

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.process.threads.mutex import MutexMemory, owner_of


def _mutex(lock: int = 2, owner: int = 42, users: int = 1, kind: int = 0) -> bytes:
    return struct.pack("<iIiIi", lock, 0, owner, users, kind)


def test_the_owner() -> None:
    """
    Of a mutex that somebody waits for, of any of the usual kinds.
    """
    assert [42] * 4 == [owner_of(_mutex(kind=kind)) for kind in range(4)]


@pytest.mark.parametrize(
    "content",
    [
        _mutex(lock=1),
        _mutex(lock=0),
        _mutex(owner=0),
        _mutex(owner=-1),
        _mutex(users=0),
        _mutex(kind=0x10),
        bytes(20),
        b"\xff" * 20,
    ],
    ids=["nobody waits", "free", "no owner", "negative", "unused", "robust", "zeros", "ones"],
)
def test_what_is_no_mutex_with_an_owner(content: bytes) -> None:
    """
    A semaphore, a condition variable, and whatever else threads sleep on.
    """
    assert owner_of(content) is None


@contextmanager
def _wanted_mutex() -> Iterator[int]:
    """Give the address of a mutex of this process that this thread has and another one wants."""
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    address = ctypes.addressof(mutex)
    libc.pthread_mutex_lock(mutex)
    waiter = threading.Thread(target=lambda: libc.pthread_mutex_lock(mutex))
    waiter.start()
    while mutex.raw[0] != 2:
        pass
    try:
        yield address
    finally:
        libc.pthread_mutex_unlock(mutex)
        waiter.join()


def test_the_owner_of_a_real_one() -> None:
    """
    The C library of this machine keeps it where it is looked for.
    """
    with _wanted_mutex() as address, MutexMemory(os.getpid()) as memory:
        assert threading.get_native_id() == memory.owner(address)


def test_nothing_is_read_that_is_not_in_memory(tmp_path: Path) -> None:
    """
    Of a page that the kernel does not call a private one, and of none at all, no owner is known.
    """
    with _wanted_mutex() as address, MutexMemory(os.getpid()) as real:
        assert real.owner(8) is None
        folder = tmp_path / str(os.getpid())
        folder.mkdir()
        (folder / "pagemap").write_bytes(b"")
        (folder / "mem").symlink_to("/proc/self/mem")
        with MutexMemory(os.getpid(), proc=tmp_path) as memory:
            assert memory.owner(address) is None
