"""The two functions that deal with a lock others want, in a stripped library."""

from itertools import count, pairwise
from pathlib import Path

import pytest

from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.sites.lock_functions import find_lock_functions
from support.elf.disassembly import instructions
from support.gil.pypy_library import GIVES, SLOW, compiled


def test_both_functions_and_both_words_are_found(tmp_path: Path) -> None:
    """
    Where the symbols are that the library had before it was stripped.
    """
    library = compiled(tmp_path)
    found = find_lock_functions(library.image)

    assert {
        "slow": found.slow.start,
        "gives": found.gives.start,
        "lock": found.lock,
        "waiting": found.waiting,
    } == {name: library.symbols[name] for name in ("slow", "gives", "lock", "waiting")}


def test_the_calls_are_those_that_are_reached_once(tmp_path: Path) -> None:
    """
    The first of the slow path's last two calls, the yield's first one, and where it returns to.
    """
    library = compiled(tmp_path)
    found = find_lock_functions(library.image)
    slow, gives = (
        [
            each
            for each in instructions(library.image, of.start, of.end)
            if each.target is not None and not of.start <= each.target < of.end
        ]
        for of in (found.slow, found.gives)
    )

    # It locks twice, waits behind all else in a compiler's order, and unlocks twice.
    pairs = [first.address for first, second in pairwise(slow) if first.target == second.target]
    assert [slow[0].address, found.taken] == pairs
    assert found.given == next(each.address for each in gives if "call" in each.mnemonic)
    (to_slow,) = [each for each in gives if each.target == found.slow.start]
    assert (to_slow.end,) == found.returns


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        (
            SLOW.replace("timedwait(&cond, &mutex, &until)", "wait(&cond, &mutex)") + GIVES,
            "",
            "0 functions of this PyPy wait for a lock with a time-out",
        ),
        (
            SLOW + GIVES,
            "int also(void) { return pthread_cond_timedwait(&cond, &mutex, 0) + 1; }",
            "2 functions of this PyPy wait for a lock with a time-out",
        ),
        (
            SLOW + GIVES.replace("    pthread_cond_signal(&cond);\n", ""),
            "",
            "0 functions of this PyPy yield",
        ),
        (
            SLOW + GIVES,
            GIVES.replace("gives", "another") + "long more(void) { return another() + 1; }",
            "2 functions of this PyPy yield",
        ),
        (
            SLOW.replace("    pthread_mutex_unlock(&stealer);\n", "") + GIVES,
            "",
            "ends in 0 places, not in one",
        ),
        (
            SLOW.replace("&waiting", "&other") + GIVES,
            "",
            "is not counted where it yields",
        ),
        (
            SLOW.replace("__sync_bool_compare_and_swap(&lock, 0, (long)pthread_self())", "!lock")
            + GIVES,
            "",
            "who holds the GIL of this PyPy is not certain: before 7.3.2",
        ),
        (
            SLOW + GIVES.replace("lock = 0", "__sync_bool_compare_and_swap(&other, 1, 0)"),
            "",
            "who holds the GIL of this PyPy is not certain",
        ),
    ],
    ids=count(),
)
def test_what_is_not_certain_is_refused(tmp_path: Path, source: str, more: str, words: str) -> None:
    """
    One function too many or too few, a word that only one of them uses: each has its reason.
    """
    library = compiled(tmp_path, source, more)

    with pytest.raises(GilCodeNotFound, match=words):
        find_lock_functions(library.image)
