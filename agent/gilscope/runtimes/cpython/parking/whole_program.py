"""Finds what stops and starts the world where a compiler has optimised over all files at once.

There the small functions that hand over to the larger ones are gone, and so are the calls of the
lock by which stops of one interpreter and of all of them keep out of each other's way: its code is
in the two functions that are looked for. It is the only lock of its kind, one word of static
memory, and known by what is done to it:

    lock cmpxchg %rdx, word    // by what stops the world, which sleeps in the parking lot for it
    lock xadd %rax, word       // by what starts it, which wakes all who sleep there

Either function is taken only if it is the only one of which that, and what else it does, is true.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from gilscope.arch.base import WordAccess
from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts, Place
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.cpython.sites.messages import references
from gilscope.values import dataclass

__all__ = ["LOCKS", "UNLOCKS", "WAIT", "WholeProgram"]

WAIT: Final = "PyEvent_WaitTimed"
LOCKS: Final = ("_PyRWMutex_Lock", "_PyRWMutex_RLock")
UNLOCKS: Final = ("_PyRWMutex_Unlock", "_PyRWMutex_RUnlock")
_PARK: Final = "_PyParkingLot_Park"
_WAKE_ALL: Final = "_PyParkingLot_UnparkAll"

_MILLISECOND: Final = re.compile(rb"(?:[\xb9\xbe]|\x48\xc7[\xc1\xc6])\x40\x42\x0f\x00")
"""``mov $1000000, %ecx`` or ``%esi``, an argument: the one that stops the world sleeps for as many
nanoseconds, and looks again."""
_LESS_A_READER: Final = re.compile(rb"[\x48\x49]\xc7[\xc0-\xc7]\xfc\xff\xff\xff")
"""``mov $-4, %rax``: what the one that starts it adds to the lock, which counts in fours."""

_Code = dict[int | None, list[tuple[int, bytes]]]
"""Entry of a function -> the addresses and the bytes of its pieces."""


@dataclass(frozen=True, slots=True)
class WholeProgram:
    """The functions of one file, as far as they sleep in the parking lot or wake others there."""

    image: ElfImage
    table: FrameTable
    groups: FunctionGroups
    starts: InstructionStarts
    callers: Callable[[str], AbstractSet[int | None]]
    """Tells which functions call an exported one."""

    def pair(self) -> tuple[int, int] | None:
        """Return the entries of what stops the world and what starts it; None if not certain."""
        exports = self.image.dynamic_symbols
        if not {_PARK, _WAKE_ALL, *LOCKS, *UNLOCKS} <= exports.keys():
            return None
        parking, waiting = self._code_of(_PARK), self._code_of(_PARK, WAIT)
        waking = self._code_of(_WAKE_ALL)
        taken = self._words(parking, WordAccess.EXCHANGE)
        given = self._words(waking, WordAccess.ATOMIC_ADD)
        pairs = {
            (word, *taken[word], *given[word])
            for word in taken.keys() & given.keys()
            if 1 == len(taken[word]) == len(given[word]) and taken[word] != given[word]
        }
        if len(pairs) != 1:
            return None
        ((word, stop, start),) = pairs
        # What is exported is kept although nobody in the file calls it.
        kept = exports[UNLOCKS[1]].vaddr
        # In a function of somebody else's, a part of one of them would not be seen.
        is_certain = (
            {stop, start} == self._naming(word)
            and {stop} == self._with(waiting, _MILLISECOND)
            and {start} == self._with(waking, _LESS_A_READER) - {kept}
            and all(self.callers(name) <= {stop} for name in LOCKS)
            and all(self.callers(name) <= {start} for name in UNLOCKS)
        )
        return (stop, start) if is_certain else None

    def _code_of(self, *names: str) -> _Code:
        """Return the functions that call one of these."""
        entries = {entry for name in names for entry in self.callers(name)} - {None}
        found: _Code = {entry: [] for entry in entries}
        for piece in self.table.functions:
            pieces = found.get(self.groups.entry_of(piece.start))
            if pieces is not None:
                size = piece.end - piece.start
                self.image.budget.search(size)
                pieces.append((piece.start, self.image.read(piece.start, size)))
        return found

    def _words(self, functions: _Code, access: WordAccess) -> dict[int, set[int]]:
        """Return the words of static memory that are used so, and by which of *functions*."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for entry, pieces in functions.items():
            for vaddr, code in pieces:
                for use in self.image.architecture.word_uses(code, vaddr):
                    if use.access is access and entry is not None and self._may_be(use.site):
                        found[use.word].add(entry)
        return found

    def _with(self, functions: _Code, form: re.Pattern[bytes]) -> set[int | None]:
        """Return those of *functions* that have an instruction of this form."""
        return {
            entry
            for entry, pieces in functions.items()
            for vaddr, code in pieces
            if any(self._may_be(vaddr + match.start()) for match in form.finditer(code))
        }

    def _naming(self, word: int) -> set[int | None]:
        """Return the functions that load the address of *word*, as who sleeps or wakes has to."""
        loads = references(self.image, frozenset({word}))
        return {self.groups.entry_of(site) for site in loads if self._may_be(site)}

    def _may_be(self, vaddr: int) -> bool:
        """Return whether an instruction begins there, as far as that is known."""
        return self.starts.place_of(vaddr) in (Place.START, Place.UNKNOWN)
