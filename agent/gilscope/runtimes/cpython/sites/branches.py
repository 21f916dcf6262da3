"""Finds what reads like the direct calls and jumps of x86-64 code, without disassembling it.

Every byte is taken for the beginning of a branch, and the few whose target is a place of interest
are kept. A few of those may be bytes inside other instructions: small distances are frequent in
code, so that one build in some thousands has such a call of one library function. Whoever puts a
probe on a branch has to ask `gilscope.elf.instruction_starts` first.
Short jumps are too common for that; they are looked for where a tail call to a neighbour stands,
at the end of a function.
"""

import re
import struct
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from gilscope.elf.budget import MATCHES_AT_ONCE, ElfBudget
from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage, Section
from gilscope.elf.plt import Linkage

__all__ = ["Branches", "Crossing", "LibraryCall", "scan_branches"]

_NOT_SCANNED: Final = (".init", ".fini")

_RELATIVE_LENGTH: Final = 5
_THROUGH_SLOT_LENGTH: Final = 6
_CALL_THROUGH_SLOT: Final = 0x15
_SHORT_JUMP: Final = 0xEB
_SHORT_LENGTH: Final = 2

# What the file may have many of, for its budget.
_SEARCHES: Final = 4
_STEPS_OF_TARGET: Final = 2
_TARGET_BYTES: Final = 150
_LIBRARY_CALL_BYTES: Final = 200
_CROSSING_BYTES: Final = 250
_CALL_BYTES: Final = 8


class LibraryCall(NamedTuple):
    """One call of a function of another library."""

    site: int
    """Virtual address of the call instruction."""
    length: int
    """Bytes of it: 5 through a PLT stub, 6 through a GOT slot."""
    name: str


class Crossing(NamedTuple):
    """A jump from one piece of code to another one."""

    site: int
    target: int
    is_conditional: bool


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a file that leave the piece of code in which they stand."""

    library_calls: tuple[LibraryCall, ...]
    """Calls of the wanted functions."""
    calls: dict[int, "array[int]"]
    """Entry of a function -> the return addresses of its direct calls."""
    crossings: dict[int, list[Crossing]]
    """Start of a piece of code -> the jumps from other pieces to it."""


def scan_branches(
    image: ElfImage, table: FrameTable, linkage: Linkage, wanted: frozenset[str]
) -> Branches:
    """Return the branches between the pieces of code of an image, and its calls of *wanted*.

    Calls through the PLT or GOT of functions that the image itself defines count as direct.
    Raises ElfError.
    """
    scan = _Scan(image, table, linkage, wanted)
    image.budget.spend(_STEPS_OF_TARGET * len(table), _TARGET_BYTES * len(table))
    for section in image.sections:
        is_stub = section.name.startswith(".plt") or section.name in _NOT_SCANNED
        if section.is_code and not is_stub:
            image.budget.search(_SEARCHES * section.size)
            scan.section(image, section)
    return Branches(tuple(sorted(scan.library_calls)), dict(scan.calls), dict(scan.crossings))


class _Scan:
    """Collects the branches of one section after the other."""

    def __init__(
        self, image: ElfImage, table: FrameTable, linkage: Linkage, wanted: frozenset[str]
    ) -> None:
        self.library_calls: list[LibraryCall] = []
        self.calls: dict[int, array[int]] = {}
        self.crossings: defaultdict[int, list[Crossing]] = defaultdict(list)
        self._budget = image.budget
        # Lists are quicker to read.
        self._starts = table.starts.tolist()
        self._ends = table.ends.tolist()
        exports = {name: symbol.vaddr for name, symbol in image.dynamic_symbols.items()}
        self._slots = _destinations(linkage.slots, exports, wanted)
        self._targets: dict[int, int | str] = {start: start for start in self._starts}
        self._targets |= _destinations(linkage.stubs, exports, wanted)
        self._first = min(self._targets, default=0)
        self._last = max(self._targets, default=0)

    def section(self, image: ElfImage, section: Section) -> None:
        """Add the branches of one section."""
        code = image.section_bytes(section)
        reach = self._reach(section)
        for position, target in _relative(code, rb"\xe8", reach, self._budget):
            destination = self._targets.get(section.vaddr + target)
            if destination is not None:
                self._add_call(section.vaddr + position, _RELATIVE_LENGTH, destination)
        for position, target in _relative(code, rb"\xe9", reach, self._budget):
            self._add_jump(section.vaddr + position, section.vaddr + target, is_conditional=False)
        for position, target in _relative(code, rb"\x0f[\x80-\x8f]", reach, self._budget):
            self._add_jump(section.vaddr + position, section.vaddr + target, is_conditional=True)
        for position, target in _relative(code, rb"\xff[\x15\x25]", b".", self._budget):
            destination = self._slots.get(section.vaddr + target)
            if destination is None:
                continue
            site = section.vaddr + position
            if code[position + 1] == _CALL_THROUGH_SLOT:
                self._add_call(site, _THROUGH_SLOT_LENGTH, destination)
            elif isinstance(destination, int):
                self._add_jump(site, destination, is_conditional=False)
        self._add_short_tail_calls(code, section.vaddr)

    def _reach(self, section: Section) -> bytes:
        """Return a regex class for the highest byte of a 32-bit distance to a target."""
        farthest = max(
            abs(self._last - section.vaddr),
            abs(self._first - section.vaddr - section.size),
            section.size,
        )
        top = min(farthest >> 24, 0x7F)
        return b"[\\x00-\\x%02x\\x%02x-\\xff]" % (top, 0xFF - top)

    def _add_short_tail_calls(self, code: memoryview, vaddr: int) -> None:
        first = bisect_right(self._starts, vaddr)
        last = bisect_right(self._starts, vaddr + len(code))
        self._budget.spend(last - max(first - 1, 0))
        for end in self._ends[max(first - 1, 0) : last]:
            position = end - vaddr - _SHORT_LENGTH
            if not 0 <= position <= len(code) - _SHORT_LENGTH or code[position] != _SHORT_JUMP:
                continue
            target = end + int.from_bytes(code[position + 1 : position + 2], signed=True)
            if target in self._targets:
                self._add_jump(vaddr + position, target, is_conditional=False)

    def _add_call(self, site: int, length: int, destination: int | str) -> None:
        if isinstance(destination, str):
            self._budget.spend(1, _LIBRARY_CALL_BYTES)
            self.library_calls.append(LibraryCall(site, length, destination))
            return
        calls = self.calls.get(destination)
        if calls is None:
            self._budget.spend(1, _TARGET_BYTES)
            calls = self.calls[destination] = array("Q")
        calls.append(site + length)

    def _add_jump(self, site: int, target: int, *, is_conditional: bool) -> None:
        destination = self._targets.get(target)
        if destination is None or isinstance(destination, str):
            return
        origin = bisect_right(self._starts, site) - 1
        if origin < 0 or site >= self._ends[origin] or self._starts[origin] == destination:
            return
        self._budget.spend(1, _CROSSING_BYTES)
        self.crossings[destination].append(Crossing(site, destination, is_conditional))


def _destinations(
    names: dict[int, str], exports: dict[str, int], wanted: frozenset[str]
) -> dict[int, int | str]:
    """Map addresses to the name of a wanted function or the address of one of the file's own."""
    found: dict[int, int | str] = {}
    for address, name in names.items():
        if name in wanted:
            found[address] = name
        elif name in exports:
            found[address] = exports[name]
    return found


def _relative(
    code: memoryview, opcode: bytes, highest_byte: bytes, budget: ElfBudget
) -> Iterator[tuple[int, int]]:
    """Yield position and target of what looks like an opcode with a 32-bit distance behind it.

    Both are counted from the beginning of *code*. Only the opcode is consumed, so that a branch
    is found whatever the bytes before it look like.
    """
    pattern = re.compile(opcode + rb"(?=..." + highest_byte + rb")", re.DOTALL)
    distance = struct.Struct("<i").unpack_from
    for number, match in enumerate(pattern.finditer(code)):
        if not number % MATCHES_AT_ONCE:
            budget.spend(MATCHES_AT_ONCE, MATCHES_AT_ONCE * _CALL_BYTES)
        end = match.end()
        yield match.start(), end + 4 + distance(code, end)[0]
