"""What is known of one processor only."""

import sys
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.static_lock import find_static_lock
from gilscope.runtimes.cpython27.semaphore import resolve_sites as resolve_semaphore
from gilscope.runtimes.processors import require_x86_64
from gilscope.runtimes.pypy.sites.resolve import resolve_sites as resolve_pypy

_MACHINE = 18


@pytest.fixture(scope="module")
def images() -> tuple[ElfImage, ElfImage]:
    """Return this interpreter's file, and the same with the number of aarch64 in its header."""
    content = Path(sys.executable).read_bytes()
    changed = [content[:_MACHINE] + bytes([number, 0]) + content[20:] for number in (62, 183)]
    here, there = map(ElfImage, changed)
    return here, there


def test_a_file_for_another_processor_is_refused(images: tuple[ElfImage, ElfImage]) -> None:
    """
    With what is not known there.
    """
    here, there = images

    require_x86_64(here, "this")
    with pytest.raises(
        GilCodeNotFound,
        match="this is known on x86-64 only, and this file is built for aarch64",
    ):
        require_x86_64(there, "this")


def test_other_locks_are_refused_on_aarch64(images: tuple[ElfImage, ElfImage]) -> None:
    """
    Those of CPython 3.6 and 2.7, and PyPy's.
    """
    for find in (find_static_lock, resolve_semaphore, resolve_pypy):
        with pytest.raises(GilCodeNotFound, match="known on x86-64 only"):
            find(images[1])
