"""Finds out from a file's code how to tell a wait at a tick from one after a blocking call."""

import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython27.callers import resolve_sites

_HEAD = """
#include <semaphore.h>
void Py_FatalError(const char *);
"""
_ACQUIRE = """
__attribute__((noinline)) int PyThread_acquire_lock(sem_t *lock, int wait)
{
    int status;
    do
        status = sem_wait(lock);
    while (status == 4);
    return !status + wait;
}
int restore(sem_t *lock) { return PyThread_acquire_lock(lock, 1) + 1; }
"""
_LOOP = """
int loop(sem_t *lock, void *swapped)
{
    if (swapped)
        Py_FatalError("ceval: tstate mix-up");
    int got = %s;
    if (!got)
        Py_FatalError("ceval: orphan tstate");
    return got + 2;
}
"""


def _compiled(folder: Path, source: str) -> ElfImage:
    (folder / "made.c").write_text(_HEAD + source)
    library = folder / "made.so"
    options = ["-O2", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, "-o", str(library), str(folder / "made.c")], check=True)
    return ElfImage(library.read_bytes())


@pytest.mark.parametrize(
    ("call", "stepping"), [("PyThread_acquire_lock(lock, 1)", 1), ("sem_wait(lock)", 1)]
)
def test_the_loop_is_told_from_other_callers(tmp_path: Path, call: str, stepping: int) -> None:
    """
    Where it calls the lock's function, and where that has become a part of the loop itself.
    """
    sites = resolve_sites(_compiled(tmp_path, _ACQUIRE + _LOOP % call))

    assert [stepping, 1] == [
        sum(rule.made_to_yield is made for rule in sites.callers) for made in (False, True)
    ]
    assert all(rule.cfa_offset for rule in sites.callers if not rule.made_to_yield)
    assert "at its ticks the evaluation loop takes the lock back" in sites.checks[0]
    assert ((), ()) == (sites.waits, sites.sleeps)


def test_without_the_loop_no_cause_is_guessed(tmp_path: Path) -> None:
    """
    No rule is given where the loop cannot be found, and that is said.
    """
    sites = resolve_sites(_compiled(tmp_path, _ACQUIRE))

    assert () == sites.callers
    assert ("the evaluation loop's tick was not identified: why a thread waits is unknown",) == (
        sites.checks
    )


def test_a_lock_of_another_kind_is_refused(tmp_path: Path) -> None:
    """
    A build that uses a condition variable does not call sem_wait.
    """
    with pytest.raises(GilCodeNotFound, match="its lock is not a semaphore"):
        resolve_sites(_compiled(tmp_path, "int other(void) { return 1; }"))
