"""What the resolver has to know of a file's code: functions, branches and error messages."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from gilscope.arch.base import Architecture
from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts, Place
from gilscope.elf.plt import read_linkage
from gilscope.runtimes.cpython.sites.branches import LibraryCall, scan_branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.cpython.sites.messages import (
    GIL_MESSAGES,
    YIELD_MESSAGES,
    message_addresses,
    references,
)
from gilscope.values import dataclass

__all__ = ["LOCK", "SIGNAL", "TIMED_WAITS", "UNLOCK", "WAIT", "Code", "FunctionFacts", "read_code"]

SIGNAL: Final = "pthread_cond_signal"
WAIT: Final = "pthread_cond_wait"
TIMED_WAITS: Final = ("pthread_cond_timedwait", "pthread_cond_clockwait")
LOCK: Final = "pthread_mutex_lock"
UNLOCK: Final = "pthread_mutex_unlock"
_PROBED: Final = frozenset((SIGNAL, WAIT, *TIMED_WAITS))
_WANTED: Final = _PROBED | {LOCK, UNLOCK}


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What one function, with all its parts, does that may have to do with a GIL."""

    entry: int
    """Address of the function."""
    calls: tuple[LibraryCall, ...]
    """Calls of the condition variable and mutex functions."""
    has_gil_message: bool
    """Whether it refers to an error message of take_gil or drop_gil."""

    def named(self, *names: str) -> tuple[LibraryCall, ...]:
        """Return the calls of these functions, in the order of their addresses."""
        return tuple(call for call in self.calls if call.name in names)


@dataclass(frozen=True, slots=True)
class Code:
    """The code of one file as far as the GIL is concerned."""

    exports: dict[str, int]
    """Name -> address of what the dynamic symbol table defines."""
    table: FrameTable
    groups: FunctionGroups
    functions: tuple[FunctionFacts, ...]
    """Functions with a wanted call or a GIL message, sorted by entry."""
    yield_messages: frozenset[int]
    """Entries of the functions that refer to a message of the evaluation loop's yield."""
    starts: InstructionStarts
    misread_calls: int
    """Places that read like calls to be probed, inside other instructions or outside functions."""
    architecture: Architecture

    def return_addresses(self, callee: int, caller: int) -> tuple[int, ...]:
        """Return the addresses behind the calls of one function in another one.

        What reads like a call inside another instruction is left out.
        """
        return tuple(
            pc for pc in self.groups.return_addresses(callee, caller) if self._may_follow_call(pc)
        )

    def _may_follow_call(self, pc: int) -> bool:
        lengths = (self.architecture.call_length, self.architecture.slot_call_length)
        places = {self.starts.place_of(pc - length) for length in lengths}
        return not places.isdisjoint((Place.START, Place.UNKNOWN))


def read_code(image: ElfImage) -> Code:
    """Return the code of an image; raises ElfError."""
    table = read_frame_table(image)
    branches = scan_branches(image, table, read_linkage(image), _WANTED)
    exports = {name: symbol.vaddr for name, symbol in image.dynamic_symbols.items()}
    groups = FunctionGroups(table, branches, frozenset(exports.values()), image.budget)
    gil_addresses = message_addresses(image, GIL_MESSAGES)
    yield_addresses = message_addresses(image, YIELD_MESSAGES)
    loads = references(image, gil_addresses | yield_addresses)
    with_gil_message = _entries(groups, loads, gil_addresses)
    starts = InstructionStarts(image, table)
    calls: list[LibraryCall] = []
    misread = 0
    for call in branches.library_calls:
        if starts.place_of(call.site) in (Place.START, Place.UNKNOWN):
            calls.append(call)
        else:
            misread += call.name in _PROBED
    return Code(
        exports,
        table,
        groups,
        _facts(groups, calls, with_gil_message),
        _entries(groups, loads, yield_addresses),
        starts,
        misread,
        image.architecture,
    )


def _entries(
    groups: FunctionGroups, loads: dict[int, int], addresses: frozenset[int]
) -> frozenset[int]:
    found = {groups.entry_of(site) for site, address in loads.items() if address in addresses}
    return frozenset(entry for entry in found if entry is not None)


def _facts(
    groups: FunctionGroups, calls: Iterable[LibraryCall], with_gil_message: frozenset[int]
) -> tuple[FunctionFacts, ...]:
    by_entry: defaultdict[int, list[LibraryCall]] = defaultdict(list)
    for call in calls:
        entry = groups.entry_of(call.site)
        if entry is not None:
            by_entry[entry].append(call)
    for entry in with_gil_message:
        by_entry.setdefault(entry, [])
    return tuple(
        FunctionFacts(entry, tuple(by_entry[entry]), entry in with_gil_message)
        for entry in sorted(by_entry)
    )
