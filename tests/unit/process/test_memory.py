"""Reads the test's own memory as if it were another process'."""

import ctypes
import errno
import mmap
import os
import random
import subprocess
from pathlib import Path

import pytest

from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import read_maps


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


def _echo(child: "subprocess.Popen[bytes]") -> None:
    """Return when *child*, a cat, runs."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    assert child.stdout.read(1)


def test_a_process_that_has_ended() -> None:
    """
    A read fails as it does without a process, also one at an address where nothing was mapped.
    """
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _echo(child)
    with ProcessMemory(child.pid) as memory:
        address = read_maps(child.pid)[0].start
        assert memory.read(address, 4) == b"\x7fELF"
        assert memory.is_there
        child.communicate()
        assert not memory.is_there
        for each in (address, 16):
            with pytest.raises(ProcessLookupError):
                memory.read(each, 4)


def test_another_program_in_its_place() -> None:
    """
    It has the same number, and is not read.
    """
    command = ["/bin/sh", "-c", "echo; read line; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.read(1)
        with ProcessMemory(child.pid) as memory:
            assert memory.read(read_maps(child.pid)[0].start, 4) == b"\x7fELF"
            child.stdin.write(b"go on\n")
            child.stdin.flush()
            _echo(child)
            with pytest.raises(ProcessLookupError):
                memory.read(read_maps(child.pid)[0].start, 4)


def test_a_read_that_runs_into_a_hole() -> None:
    """
    It raises instead of returning less.
    """
    with mmap.mmap(-1, 3 * mmap.PAGESIZE) as view, ProcessMemory(os.getpid()) as memory:
        held = ctypes.c_char.from_buffer(view)
        address = ctypes.addressof(held)
        ctypes.CDLL(None).mprotect(
            ctypes.c_void_p(address + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0
        )
        view[mmap.PAGESIZE - 8 : mmap.PAGESIZE] = b"the edge"
        edge = address + mmap.PAGESIZE
        assert memory.read(edge - 8, 8) == b"the edge"
        with pytest.raises(OSError, match="Bad address") as caught:
            memory.read(edge - 8, 9)
        assert errno.EFAULT == caught.value.errno
        del held


def test_more_than_a_page_is_read_at_once() -> None:
    """
    As it is, to the last byte.
    """
    content = random.Random(4).randbytes(100_001)  # noqa: S311 - no secret
    buffer = ctypes.create_string_buffer(content, len(content))
    with ProcessMemory(os.getpid()) as memory:
        assert memory.read(ctypes.addressof(buffer), len(content)) == content


def test_closing_gives_the_descriptor_back() -> None:
    """
    After closing, also twice, nothing can be read.
    """
    memory = ProcessMemory(os.getpid())
    memory.close()
    memory.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        memory.read(id(memory), 8)


def test_memory_that_was_given_up() -> None:
    """
    Every read fails as if the process had gone, so that whoever reads ends.
    """
    for kind in (ProcessMemory, GuardedMemory):
        with kind(os.getpid()) as memory:
            assert memory.read(id(memory), 8)
            memory.give_up()
            with pytest.raises(ProcessLookupError):
                memory.read(id(memory), 8)
