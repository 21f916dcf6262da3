"""Reads the test's own memory as if it were another process'."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from gilscope.procmem import ProcessMemory


def test_bytes_are_read_as_they_are() -> None:
    """Exactly the bytes at the address come back."""
    text = ctypes.create_string_buffer(b"the lock is mine")
    with ProcessMemory(os.getpid()) as memory:
        assert memory.read(ctypes.addressof(text) + 4, 4) == b"lock"


@pytest.mark.parametrize("address", [16, -8, 1 << 63, 1 << 70])
def test_an_address_without_memory(address: int) -> None:
    """A bad address raises OSError, also one that no file offset can express."""
    with ProcessMemory(os.getpid()) as memory, pytest.raises(OSError) as caught:  # noqa: PT011
        memory.read(address, 8)
    assert caught.value.errno in {errno.EFAULT, errno.EIO}


def test_a_process_that_does_not_exist(tmp_path: Path) -> None:
    """Opening fails where /proc has no such process."""
    with pytest.raises(FileNotFoundError):
        ProcessMemory(4711, proc=tmp_path)


def test_a_memory_that_is_gone(tmp_path: Path) -> None:
    """Where the kernel has nothing more to give, the error says that the process is gone."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "mem").write_bytes(b"")
    with ProcessMemory(7, proc=tmp_path) as memory, pytest.raises(ProcessLookupError):
        memory.read(0, 8)


def test_a_cut_read(tmp_path: Path) -> None:
    """A read that runs into a hole raises instead of returning less."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "mem").write_bytes(b"1234567")
    with ProcessMemory(7, proc=tmp_path) as memory:
        assert memory.read(0, 7) == b"1234567"
        with pytest.raises(OSError, match="Bad address") as caught:
            memory.read(0, 8)
    assert errno.EFAULT == caught.value.errno


def test_closing_gives_the_descriptor_back(tmp_path: Path) -> None:
    """After closing, also twice, nothing can be read."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "mem").write_bytes(b"12345678")
    memory = ProcessMemory(7, proc=tmp_path)
    memory.close()
    memory.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        memory.read(0, 8)
