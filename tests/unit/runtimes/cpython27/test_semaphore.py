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
    assert () == sites.callers


@pytest.mark.skipif(_LIBC is None, reason="no glibc at Debian's place")
def test_a_semaphore_is_taken_at_two_places_and_given_back_at_one() -> None:
    """
    At once or after a wait, and on instructions that the kernel emulates.
    """
    assert _LIBC is not None
    image = ElfImage(_LIBC.read_bytes())
    sites = resolve_sites(image)
    taken = [image.bytes_at(at.offset, 1) for at in sites.acquires]
    given = [image.bytes_at(at.offset, 1) for at in sites.releases]
    exchange = [
        image.bytes_at(sites.acquires[0].offset - 5, 5),
        image.bytes_at(sites.releases[0].offset + 6, 5),
    ]

    assert ([b"\x75", b"\x75"], [b"\x74"]) == (taken, given)
    # lock cmpxchg %rdx, by (%rbx) and (%rdi)
    assert [b"\xf0\x48\x0f\xb1\x13", b"\xf0\x48\x0f\xb1\x17"] == exchange


@pytest.mark.skipif(_LIBC is None, reason="no glibc at Debian's place")
@pytest.mark.parametrize(
    ("name", "before", "behind", "reason"),
    [
        # cmp $0x7fffffff,%eax: instead of it, a jump over it
        ("sem_post", "3dffffff7f", "eb03909090", "does not come to its exchange by one jump"),
        # lock cmpxchg %rdx,(%rdi): by (%rsi)
        ("sem_post", "f0480fb117", "f0480fb116", "the register that is expected"),
        # lock cmpxchg %rdx,(%rbx): without an exchange
        ("sem_wait", "f0480fb113", "9090909090", "by one exchange"),
    ],
)
def test_without_certainty_there_are_waits_alone(
    name: str, before: str, behind: str, reason: str
) -> None:
    """
    Where a semaphore is taken or given back in another way, holds have no places, and why.
    """
    assert _LIBC is not None
    code = bytearray(_LIBC.read_bytes())
    image = ElfImage(bytes(code))
    vaddr = image.default_version_symbol(name)
    assert vaddr is not None
    at = code.index(bytes.fromhex(before), image.file_offset(vaddr))
    code[at : at + 5] = bytes.fromhex(behind)
    sites = resolve_sites(ElfImage(bytes(code)))

    assert ((), ()) == (sites.acquires, sites.releases)
    assert len(sites.waits) == len(sites.sleeps) == 1
    assert reason in sites.checks[-1]


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
