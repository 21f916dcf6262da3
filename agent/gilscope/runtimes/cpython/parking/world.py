"""Finds where a thread stops the world, and where it starts it again (free-threaded builds).

Small functions do nothing but hand over to larger ones, two of them with the same part of a
structure:

    add $offset, %rdi
    jmp stop_the_world         // or start_the_world

All that stops the world passes a jump or a call to the larger ones, the garbage collector included.
The one that stops it waits for an event, and nobody but these two acquires and releases the lock by
which stops of one interpreter and of all of them keep out of each other's way: where others do, a
compiler has made a part of one of them, and its stops would not be seen. Where there are no small
functions the larger ones are known by that lock alone (`whole_program`).
"""

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Final

from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts, Place
from gilscope.runtimes.cpython.parking.whole_program import LOCKS, UNLOCKS, WAIT, WholeProgram
from gilscope.runtimes.cpython.sites.branches import Branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.sites import Site
from gilscope.values import dataclass

__all__ = ["WorldSites", "find_world"]

_HANDS_OVER: Final = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa)?\x48\x81\xc7(?P<offset>.{4})\xe9(?P<distance>.{4})", re.DOTALL
)
"""``add $offset, %rdi`` and ``jmp``, with or without ``endbr64``."""
_LENGTHS: Final = (12, 16)
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class WorldSites:
    """Jumps and calls, each of them reached once for each stop."""

    stops: tuple[Site, ...]
    """To the function that stops the world, by the thread that asks for it."""
    starts: tuple[Site, ...]
    """To the one that starts it again, by the same thread."""


def find_world(
    image: ElfImage,
    table: FrameTable,
    branches: Branches,
    groups: FunctionGroups,
    starts: InstructionStarts,
) -> WorldSites | None:
    """Return the sites of *image*; None where they are not certain."""

    def callers(name: str) -> set[int | None]:
        symbol = image.dynamic_symbols.get(name)
        if symbol is None:
            return set()
        calls = (behind - 1 for behind in branches.calls.get(symbol.vaddr, ()))
        jumps = (jump.site for jump in branches.crossings.get(symbol.vaddr, ()))
        return {groups.entry_of(place) for place in (*calls, *jumps)}

    whole = WholeProgram(image, table, groups, starts, callers)
    handed = _pairs(image, table, callers(WAIT))
    pair = _sole(handed, callers) if handed else whole.pair()
    if pair is None:
        return None
    stops, again = (_sites(image, branches, starts, entry) for entry in pair)
    return WorldSites(stops, again) if stops and again else None


def _pairs(
    image: ElfImage, table: FrameTable, waiting: Collection[int | None]
) -> set[tuple[int, int]]:
    """Return the functions that others hand over to for the same thing, that which waits first."""
    found = set()
    # The world of one interpreter, and that of all of them, are stopped by the same function.
    for entries in _handed_over(image, table).values():
        if len(entries) == _PAIR:
            first, second = sorted(entries, key=lambda entry: entry not in waiting)
            if first in waiting and second not in waiting:
                found.add((first, second))
    return found


def _sole(
    pairs: Collection[tuple[int, int]], callers: Callable[[str], Collection[int | None]]
) -> tuple[int, int] | None:
    """Return the only one of *pairs*, if nobody else acquires or releases that lock."""
    if len(pairs) != 1:
        return None
    (pair,) = pairs
    for entry, names in zip(pair, (LOCKS, UNLOCKS), strict=True):
        if any(set(callers(name)) != {entry} for name in names):
            return None
    return pair


def _handed_over(image: ElfImage, table: FrameTable) -> dict[bytes, set[int]]:
    """Return the functions that others hand over to, by what these add before."""
    found: defaultdict[bytes, set[int]] = defaultdict(set)
    for piece in table.functions:
        if piece.end - piece.start not in _LENGTHS:
            continue
        match = _HANDS_OVER.fullmatch(image.read(piece.start, piece.end - piece.start))
        if match is not None:
            (distance,) = struct.unpack("<i", match["distance"])
            found[match["offset"]].add(piece.start + match.end() + distance)
    return found


def _sites(
    image: ElfImage, branches: Branches, starts: InstructionStarts, entry: int
) -> tuple[Site, ...]:
    """Return the jumps and calls to the function at *entry*, without what only looks like one.

    None where it is not certain that these are all of them.
    """
    length = image.architecture.call_length
    jumps = branches.crossings.get(entry, ())
    places = {
        vaddr: starts.place_of(vaddr)
        for vaddr in (
            *(behind - length for behind in branches.calls.get(entry, ())),
            *(jump.site for jump in jumps),
        )
    }
    # Where a jump has a condition, it is not known in the probe whether it is taken.
    conditional = {jump.site for jump in jumps if jump.is_conditional}
    if Place.UNKNOWN in places.values() or any(places[each] is Place.START for each in conditional):
        return ()
    return tuple(
        Site(vaddr, image.file_offset(vaddr))
        for vaddr, place in sorted(places.items())
        if place is Place.START
    )
