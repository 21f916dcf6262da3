"""Finds the two functions of PyPy that deal with a GIL that others want.

In the whole of its library, of 60 MB, one function calls the timed wait of pthread: the slow path
of acquiring the GIL. One other one calls it, and of pthread does nothing but wake a waiter: that by
which a thread yields. Neither has a symbol in a stripped file.
"""

from collections import defaultdict
from itertools import pairwise
from typing import Final

from gilscope.arch.base import WordAccess
from gilscope.elf.eh_frame import FrameTable, Function, read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.plt import read_linkage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import LibraryCall, scan_branches
from gilscope.values import dataclass

__all__ = ["LockFunctions", "find_lock_functions"]

_LOCK: Final = "pthread_mutex_lock"
_UNLOCK: Final = "pthread_mutex_unlock"
_SIGNAL: Final = "pthread_cond_signal"
_TIMED: Final = frozenset({"pthread_cond_timedwait", "pthread_cond_clockwait"})
_WANTED: Final = frozenset({_LOCK, _UNLOCK, _SIGNAL, "pthread_cond_wait", *_TIMED})
_YIELDS: Final = (_LOCK, _UNLOCK, _SIGNAL)
"""What the yield does before it acquires the GIL again."""
_CLOSE: Final = 64
"""Bytes between the two unlocks with which the slow path ends."""


@dataclass(frozen=True, slots=True)
class LockFunctions:
    """Where a thread waits for the GIL, and where it gives it away because others wait."""

    table: FrameTable
    slow: Function
    """Takes it on the contended path."""
    gives: Function
    """Yields it to who waits."""
    taken: int
    """The call in `slow` that is reached once, with the GIL."""
    given: int
    """The call in `gives` with which that begins to wake a waiter: nobody waits, no call."""
    returns: tuple[int, ...]
    """Where `slow` returns to in `gives`."""
    lock: int
    """The word that is 0 while the GIL is free, and else says who holds it."""
    waiting: int
    """The word that counts who waits."""


def find_lock_functions(image: ElfImage) -> LockFunctions:
    """Return them; raises GilCodeNotFound where one is not certain, or ElfError."""
    table = read_frame_table(image)
    branches = scan_branches(image, table, read_linkage(image), _WANTED)
    calls: defaultdict[Function, list[LibraryCall]] = defaultdict(list)
    for call in branches.library_calls:
        function = table.containing(call.site)
        if function is not None:
            calls[function].append(call)
    slow = _the_one(
        [function for function, made in calls.items() if _TIMED & {call.name for call in made}],
        "wait for a lock with a time-out",
    )
    returns = branches.calls.get(slow.start, ())
    callers = {table.containing(address - 1) for address in returns}
    gives = _the_one(
        [
            function
            for function, made in calls.items()
            if function in callers and tuple(call.name for call in made) == _YIELDS
        ],
        "yield to a thread that waits",
    )
    lock, waiting = _words(image, slow, gives)
    return LockFunctions(
        table=table,
        slow=slow,
        gives=gives,
        taken=_taken(calls[slow]),
        given=calls[gives][0].site,
        returns=tuple(at for at in returns if table.containing(at - 1) == gives),
        lock=lock,
        waiting=waiting,
    )


def _the_one(found: list[Function], words: str) -> Function:
    if len(found) != 1:
        raise GilCodeNotFound(f"{len(found)} functions of this PyPy {words}, where it has one")
    return found[0]


def _taken(calls: list[LibraryCall]) -> int:
    """Return the first of the two unlocks with which the slow path ends, having the GIL."""
    mutexes = [call for call in calls if call.name in (_LOCK, _UNLOCK)]
    ends = [
        first.site
        for first, second in pairwise(mutexes)
        if first.name == second.name == _UNLOCK and second.site - first.site < _CLOSE
    ]
    if len(ends) != 1:
        raise GilCodeNotFound(
            f"acquiring the GIL of this PyPy ends in {len(ends)} places, not in one"
        )
    return ends[0]


def _words(image: ElfImage, slow: Function, gives: Function) -> tuple[int, int]:
    """Return where the lock and the number of who wait are, by what both functions do to them."""
    used = {
        function: [
            (use.access, use.word)
            for use in image.architecture.word_uses(
                image.read(function.start, function.end - function.start), function.start
            )
        ]
        for function in (slow, gives)
    }
    asked = next(
        (word for access, word in used[gives] if access in (WordAccess.TEST, WordAccess.LOAD)), None
    )
    if asked is None or (WordAccess.ATOMIC_ADD, asked) not in used[slow]:
        raise GilCodeNotFound("who waits for the GIL of this PyPy is not counted where it yields")
    locks = [
        {word for access, word in used[function] if access is WordAccess.EXCHANGE}
        for function in (slow, gives)
    ]
    if len(locks[0]) != 1 or (locks[1] and locks[0] != locks[1]):
        raise GilCodeNotFound(
            "the word that says who holds the GIL of this PyPy is not certain: before 7.3.2 it "
            "did not say so"
        )
    return locks[0].pop(), asked
