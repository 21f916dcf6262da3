"""Finds in a file of CPython 3.13 or later, without symbols, where its threads sleep for a lock.

All of them sleep in semaphores of libc, which few places call. Those of the parking lot belong to
mutexes (``PyMutex``), events and stops of the world; those of ``thread.c`` to the older kind of
lock, which some versions have left here and there. The functions of the parking lot are told apart
by the messages with which they abort.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.elf.plt import read_linkage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.parking.interpreter_locks import (
    InterpreterLocks,
    find_interpreter_locks,
)
from gilscope.runtimes.cpython.parking.spin import SPINS_WITH, SpinSites, find_spin
from gilscope.runtimes.cpython.parking.world import WorldSites, find_world
from gilscope.runtimes.cpython.sites.branches import Branches, LibraryCall, scan_branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.cpython.sites.messages import message_addresses, references
from gilscope.runtimes.sites import PausePoint, Site
from gilscope.values import dataclass

__all__ = ["ParkSites", "find_park_sites"]

_WAITS: Final = ("sem_wait", "sem_timedwait", "sem_clockwait")
_POST: Final = "sem_post"
_WANTED: Final = frozenset((*_WAITS, _POST, *SPINS_WITH))

_WAIT_MESSAGE: Final = re.compile(rb"unexpected error from semaphore: %d[^\0]*\0")
_POST_MESSAGE: Final = re.compile(rb"parking_lot: sem_post failed[^\0]*\0")

_MOVE: Final = re.compile(rb"[\x40-\x4f]?[\x31\x33\x89\x8b][\xc0-\xff]", re.DOTALL)
"""``mov`` or ``xor`` of two registers, by x86-64."""
_MOVES, _LONGEST_MOVE = 2, 3

_MOST_SITES: Final = 200
"""A build has up to twenty, and one that was optimised over all files at once 80."""


@dataclass(frozen=True, slots=True)
class ParkSites:
    """Where threads of one file sleep, and where they are woken. Addresses are exact."""

    parks: tuple[PausePoint, ...]
    """Calls of the parking lot that put a thread to sleep."""
    semaphores: tuple[PausePoint, ...]
    """Calls that put it to sleep for a lock of the older kind."""
    wakes: tuple[Site, ...]
    """Calls of the parking lot that wake a thread; those of other locks run uncontended too."""
    spin: SpinSites | None
    """Where a thread tries for a while before it sleeps; None where it does not."""
    world: WorldSites | None
    """Where the world is stopped and started; None where that is not, or not known."""
    named: InterpreterLocks
    """Locks of the interpreter's own that can be told apart."""
    checks: tuple[str, ...] = field(default=())
    """What was found, in words."""


def find_park_sites(image: ElfImage) -> ParkSites:
    """Return the sites of *image*, a CPython 3.13 or later.

    Raises GilCodeNotFound with the reason where they are not certain, ElfError where the file is
    damaged.
    """
    try:
        table = read_frame_table(image)
        branches = scan_branches(image, table, read_linkage(image), _WANTED)
    except ElfError as error:
        raise GilCodeNotFound(f"its code cannot be read: {error}") from error
    code = _Code(image, table, branches)
    waiting = code.functions_with(_WAIT_MESSAGE, _WAITS)
    waking = code.functions_with(_POST_MESSAGE, (_POST,))
    waits = code.calls(*_WAITS)
    parks = [call for call in waits if code.entry_of(call) in waiting]
    semaphores = [call for call in waits if code.entry_of(call) not in waiting]
    wakes = [call for call in code.calls(_POST) if code.entry_of(call) in waking]
    if not parks or not wakes:
        raise GilCodeNotFound(
            f"its parking lot has {len(parks)} places to sleep and {len(wakes)} to wake; at least "
            "one of each is in every build that is known"
        )
    if len(waits) + len(wakes) > _MOST_SITES:
        raise GilCodeNotFound(f"{len(waits) + len(wakes)} places to sleep and wake are too many")
    spin = find_spin(image, table, branches, code.groups, code.starts)
    # Where mutexes do not spin there is a GIL, no world to be stopped, and few locks.
    world = find_world(image, table, branches, code.groups, code.starts) if spin else None
    named = find_interpreter_locks(image, table, code.starts) if spin else InterpreterLocks()
    return ParkSites(
        parks=code.pauses(parks),
        semaphores=code.pauses(semaphores),
        wakes=tuple(code.site(call.site) for call in wakes),
        spin=spin,
        world=world,
        named=named,
        checks=(
            f"{len(parks)} places of the parking lot to sleep and {len(wakes)} to wake",
            f"{len(semaphores)} places to sleep for other locks",
            "mutexes spin before they sleep" if spin else "mutexes do not spin",
            *((_named_words(named), _words(world)) if spin else ()),
        ),
    )


def _named_words(named: InterpreterLocks) -> str:
    if not named.names:
        return "no lock of the interpreter's own is known by name"
    return f"the interpreter's own locks are known by name for {', '.join(named.names)}"


def _words(world: WorldSites | None) -> str:
    if world is None:
        return "stops of the world are seen where they make a thread sleep"
    return f"{len(world.stops)} places that stop the world and {len(world.starts)} that start it"


class _Code:
    """The code of one file, as far as it calls what is wanted."""

    def __init__(self, image: ElfImage, table: FrameTable, branches: Branches) -> None:
        exports = frozenset(symbol.vaddr for symbol in image.dynamic_symbols.values())
        self._image = image
        self._branches = branches
        self.groups = FunctionGroups(table, branches, exports, image.budget)
        self.starts = InstructionStarts(image, table)

    def entry_of(self, call: LibraryCall) -> int | None:
        return self.groups.entry_of(call.site)

    def calls(self, *names: str) -> list[LibraryCall]:
        """Return the calls of these functions; bytes inside of other instructions are none."""
        return [
            call
            for call in self._branches.library_calls
            if call.name in names and self.starts.is_start(call.site)
        ]

    def functions_with(self, message: re.Pattern[bytes], names: tuple[str, ...]) -> frozenset[int]:
        """Return the entries of functions that abort with *message* and call one of *names*.

        A compiler may put the aborting half into a function of its own: then those that lead to it
        are meant.
        """
        loads = references(self._image, message_addresses(self._image, message))
        callers = {self.entry_of(call) for call in self.calls(*names)}
        found: set[int] = set()
        for entry in {self.groups.entry_of(site) for site in loads}:
            if entry is None:
                continue
            if entry in callers:
                found.add(entry)
                continue
            jumps = self._branches.crossings.get(entry, ())
            leading = {self.groups.entry_of(jump.site) for jump in jumps}
            found |= {
                each for each in leading | self.groups.callers(entry) if each in callers and each
            }
        return frozenset(found)

    def pauses(self, calls: Iterable[LibraryCall]) -> tuple[PausePoint, ...]:
        return tuple(
            PausePoint(self.site(call.site), self.site(self._behind(call))) for call in calls
        )

    def site(self, vaddr: int) -> Site:
        """Return the site at *vaddr*; raises GilCodeNotFound where it may not be probed."""
        if not self.starts.is_start(vaddr):
            raise GilCodeNotFound(
                f"the code at {vaddr:#x} belongs to the parking lot, but decoding its function "
                "from the start does not show that an instruction begins there"
            )
        return Site(vaddr, self._image.file_offset(vaddr))

    def _behind(self, call: LibraryCall) -> int:
        """Return where the jump behind *call* is; a few registers may be moved before it."""
        behind = call.site + call.length
        architecture = self._image.architecture
        seen = self._image.read(behind, _MOVES * _LONGEST_MOVE + architecture.jump_lookahead)
        for length in _moved(seen):
            distance = architecture.distance_to_jump(seen[length:])
            if distance:
                return behind + length + distance
        return behind


def _moved(code: bytes) -> Iterator[int]:
    """Yield the lengths of the instructions that *code* begins with, while they move registers."""
    length = 0
    for _ in range(_MOVES + 1):
        yield length
        match = _MOVE.match(code, length)
        if match is None:
            return
        length = match.end()
