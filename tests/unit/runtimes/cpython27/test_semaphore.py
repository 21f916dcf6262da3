"""Finds the places of a semaphore in a C library, or says why not."""

import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython27.semaphore import resolve_sites

_LIBC = next(Path("/usr/lib/x86_64-linux-gnu").glob("libc.so.6"), None)
# Too far away for a short jump.
_SLEEPS_NEVER = """
__attribute__((noinline)) static int slow(volatile int *s) { while (!*s); return 1; }
__asm__(".skip 512, 0x90");
int sem_wait(volatile int *s) { if (*s) return 0; return slow(s); }
"""


def _compiled(folder: Path, source: str) -> ElfImage:
    (folder / "made.c").write_text(source)
    library = folder / "made.so"
    options = ["-O2", "-fno-toplevel-reorder", "-fno-pie", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, "-o", str(library), str(folder / "made.c")], check=True)
    return ElfImage(library.read_bytes())


@pytest.mark.skipif(_LIBC is None, reason="no glibc at Debian's place")
def test_the_places_of_this_machines_libc_are_found() -> None:
    """
    One wait, one sleep before its end, all on instructions that the kernel emulates.
    """
    assert _LIBC is not None
    image = ElfImage(_LIBC.read_bytes())
    sites = resolve_sites(image)
    (wait,), (sleep,) = sites.waits, sites.sleeps
    is_emulated = image.architecture.is_emulated

    assert image.build_id == sites.build_id
    assert {b"\xe9", b"\xe8"} == {image.bytes_at(at.offset, 1) for at in (wait.call, sleep)}
    assert all(is_emulated(image.bytes_at(at.offset, 15)) for at in (wait.call, wait.after, sleep))
    assert ((), (), ()) == (sites.acquires, sites.releases, sites.callers)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int other(void) { return 0; }", "does not define sem_wait"),
        ("int sem_wait(void *s) { return s != 0; }", "sem_wait has 0 ways to a slow path"),
        (
            _SLEEPS_NEVER,
            "begins 0 times, sleeps at 0 places and ends at 0",
        ),
    ],
)
def test_another_sem_wait_is_refused(tmp_path: Path, source: str, words: str) -> None:
    """
    A library that waits in another way has no places here, and the reason is told.
    """
    with pytest.raises(GilCodeNotFound, match=words):
        resolve_sites(_compiled(tmp_path, source))
