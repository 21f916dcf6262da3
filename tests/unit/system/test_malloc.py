"""Where threads get their memory."""

import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.system.malloc import give_back, share_one_arena
from support.paths import AGENT

_SOURCES = AGENT

# The program's heap belongs to the one arena that is always there.
_IS_ON_HEAP = """\
import ctypes, re, sys, threading
from gilscope.system.malloc import share_one_arena
if sys.argv[1:]:
    share_one_arena()
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_size_t
def allocate():
    address = malloc(10_000)
    (heap,) = [line for line in open("/proc/self/maps") if "[heap]" in line]
    first, end = (int(number, 16) for number in heap.split()[0].split("-"))
    print(first <= address < end)
thread = threading.Thread(target=allocate)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_a_thread_allocates_where_all_do() -> None:
    """
    On the heap, as the main thread does; without having said so, it would not.
    """
    assert ["False\n", "True\n"] == [_is_on_heap(), _is_on_heap("shared")]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One without arenas has no such setting.
    """
    monkeypatch.setattr("gilscope.system.malloc._libc", object())

    assert not share_one_arena()


def _is_on_heap(*arguments: str) -> str:
    command = [sys.executable, "-c", _IS_ON_HEAP, *arguments]
    environment = {"PYTHONPATH": str(_SOURCES)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")
def test_memory_that_nobody_uses_is_given_back() -> None:
    """
    Also where what is still used lies behind it.
    """
    # Too small to be mapped by themselves.
    blocks = [b"x" * (100_000 + number) for number in range(400)]
    last = blocks[-1]
    del blocks
    resident = _resident_bytes()

    assert give_back()
    assert resident - _resident_bytes() > 20_000_000
    assert last


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
