"""Keeps the branches of a file whose targets are places of interest.

What reads like a branch is found by the processor's own search (`gilscope.arch.base.Search`), and
may be bytes inside another instruction: whoever puts a probe on a branch has to ask
`gilscope.elf.instruction_starts` first.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from typing import Final, NamedTuple

from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage, Section
from gilscope.elf.plt import Linkage
from gilscope.values import dataclass

__all__ = ["Branches", "Crossing", "LibraryCall", "scan_branches"]

_NOT_SCANNED: Final = (".init", ".fini")

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
    """Bytes of it; on x86-64 5 through a PLT stub, 6 through a GOT slot."""
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
        self._architecture = image.architecture
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
        code, vaddr = image.section_bytes(section), section.vaddr
        architecture, spend = self._architecture, self._spend
        farthest = self._farthest(section)
        for position, target in architecture.calls(code, farthest, spend):
            destination = self._targets.get(vaddr + target)
            if destination is not None:
                self._add_call(vaddr + position, architecture.call_length, destination)
        for position, target in architecture.jumps(code, farthest, spend):
            self._add_jump(vaddr + position, vaddr + target, is_conditional=False)
        for position, target in architecture.conditional_jumps(code, farthest, spend):
            self._add_jump(vaddr + position, vaddr + target, is_conditional=True)
        for site, slot, is_call in architecture.slot_branches(code, vaddr, spend):
            destination = self._slots.get(slot)
            if destination is None:
                continue
            if is_call:
                self._add_call(site, architecture.slot_call_length, destination)
            elif isinstance(destination, int):
                self._add_jump(site, destination, is_conditional=False)
        self._add_tail_jumps(code, vaddr)

    def _spend(self, matches: int) -> None:
        self._budget.spend(matches, matches * _CALL_BYTES)

    def _farthest(self, section: Section) -> int:
        """Return the largest distance that there can be to a target."""
        return max(
            abs(self._last - section.vaddr),
            abs(self._first - section.vaddr - section.size),
            section.size,
        )

    def _add_tail_jumps(self, code: memoryview, vaddr: int) -> None:
        first = bisect_right(self._starts, vaddr)
        last = bisect_right(self._starts, vaddr + len(code))
        self._budget.spend(last - max(first - 1, 0))
        for end in self._ends[max(first - 1, 0) : last]:
            jump = self._architecture.tail_jump(code, end - vaddr)
            if jump is not None and vaddr + jump[1] in self._targets:
                self._add_jump(vaddr + jump[0], vaddr + jump[1], is_conditional=False)

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
