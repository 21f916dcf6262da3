"""Reading only memory that nobody has to be waited for."""

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.process import procfs
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.procfs import own_memory_ranges, read_maps

_CONTENT = b"x" * mmap.PAGESIZE


@pytest.fixture
def memory() -> Iterator[GuardedMemory]:
    """The memory of this very process, whose files are not ours."""
    with GuardedMemory(os.getpid()) as opened:
        yield opened


@contextmanager
def _mapped(descriptor: int) -> Iterator[tuple[mmap.mmap, int]]:
    """Map a page; yield it with its address."""
    with mmap.mmap(descriptor, mmap.PAGESIZE) as view:
        held = ctypes.c_char.from_buffer(view)
        address = ctypes.addressof(held)
        yield view, address
        del held


def test_memory_of_its_own_is_read(memory: GuardedMemory) -> None:
    """
    Also what was mapped after the last look at the mappings.
    """
    for _ in range(3):
        with _mapped(-1) as (view, address):
            view[:5] = b"hello"
            assert b"hello" == memory.read(address, 5)


def test_shared_memory_without_a_name_is_read(memory: GuardedMemory) -> None:
    """
    The kernel alone delivers it.
    """
    descriptor = os.memfd_create("test")
    os.write(descriptor, _CONTENT)
    with _mapped(descriptor) as (_, address):
        assert b"xx" == memory.read(address, 2)
    os.close(descriptor)


def test_a_file_is_read_only_when_it_was_examined(memory: GuardedMemory, tmp_path: Path) -> None:
    """
    The pages of another one may come from a program that never answers.
    """
    file = tmp_path / "file"
    file.write_bytes(_CONTENT)
    with file.open("r+b") as opened, _mapped(opened.fileno()) as (_, address):
        with pytest.raises(OSError, match="Bad address"):
            memory.read(address, 1)
        inode = file.stat().st_ino
        memory.allow(next(each for each in read_maps(os.getpid()) if each.inode == inode))
        assert b"x" == memory.read(address, 1)
        with pytest.raises(OSError, match="Bad address"):
            memory.read(address, 1 << 40)


def test_a_file_is_examined_once(memory: GuardedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whoever allows it again has no mappings read for that.
    """
    (mapping, *_) = [each for each in read_maps(os.getpid()) if each.inode]
    memory.allow(mapping)
    monkeypatch.setattr("gilscope.process.guarded_memory.own_memory_ranges", None)

    memory.allow(mapping)


def test_false_addresses_do_not_have_the_mappings_read_for_ever(
    memory: GuardedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A process can have as many of them as it likes.
    """
    readings = 0
    whole = procfs.own_memory_ranges

    def counted(text: bytes, files: set[tuple[int, int | None]]) -> list[tuple[int, int]]:
        nonlocal readings
        readings += 1
        return whole(text, files)

    monkeypatch.setattr("gilscope.process.guarded_memory.own_memory_ranges", counted)
    monkeypatch.setattr("gilscope.process.guarded_memory.time.monotonic", lambda: 1e9)
    for _ in range(1000):
        with pytest.raises(OSError, match="Bad address"):
            memory.read(4096, 8)

    assert readings == 100


def test_the_memory_of_a_process_that_has_ended() -> None:
    """
    It is said to have gone, and not that an address was wrong.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(read, 1)
        os._exit(0)
    with GuardedMemory(pid) as memory:
        os.write(write, b".")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            memory.read(struct.calcsize("P") << 20, 8)
    os.waitpid(pid, 0)
    os.close(read)
    os.close(write)


def test_which_mappings_are_its_own() -> None:
    """
    Those without a file, and of files those that are named; neighbours are one.
    """
    text = b"""\
1000-2000 r--p 00000000 fd:00 7      /usr/bin/python3.11
2000-3000 rw-p 00001000 fd:00 7      /usr/bin/python3.11
3000-4000 rw-p 00000000 00:00 0
4000-5000 rw-p 00000000 00:2a 0      /fuse/inode 0
5000-6000 rw-p 00000000 fd:00 8      /tmp/other
6000-7000 rw-p 00000000 00:00 0      [heap]
8000-9000 rw-s 00000000 00:01 99     /memfd:x (deleted)
"""
    files = {(os.makedev(0xFD, 0), 7), (os.makedev(0, 1), None)}

    assert [(0x1000, 0x4000), (0x6000, 0x7000), (0x8000, 0x9000)] == own_memory_ranges(text, files)
