"""Tells whether an address is the start of an instruction, by decoding its function up to it.

A breakpoint inside an instruction changes the instruction, and the program continues with another
constant or another address: only the start of an instruction may be probed.
"""

from bisect import bisect_right
from enum import Enum, auto
from typing import Final

from gilscope.elf.eh_frame import FrameTable, Function
from gilscope.elf.image import ElfError, ElfImage

__all__ = ["InstructionStarts", "Place"]

_LARGEST_FUNCTION: Final = 8 << 20
"""Bytes; the largest of a CPython, its evaluation loop, has a hundredth of that."""


_FUNCTION_BYTES: Final = 400


class Place(Enum):
    """What is at an address."""

    START = auto()
    """An instruction of a known function starts here."""
    INSIDE = auto()
    """An instruction of a known function covers it and starts before."""
    OUTSIDE = auto()
    """The unwind table describes no function that holds it, or it is not loaded as code."""
    UNKNOWN = auto()
    """Between the start of its function and here are bytes that could not be decoded."""


class InstructionStarts:
    """Decodes functions from their starts, each as far as somebody asks."""

    def __init__(self, image: ElfImage, table: FrameTable) -> None:
        self._image = image
        self._architecture = image.architecture
        self._table = table
        self._known: dict[Function, list[int]] = {}

    def place_of(self, vaddr: int) -> Place:
        """Return what is at an address; raises ElfError where the file is damaged."""
        self._image.budget.spend(1 + len(self._image.segments) // 8)
        function = self._table.containing(vaddr)
        if function is None or not self._image.is_code(vaddr):
            return Place.OUTSIDE
        if function.end - function.start > _LARGEST_FUNCTION:
            return Place.UNKNOWN
        # Decoding continues from the last start that was asked for.
        known = self._known.get(function)
        if known is None:
            self._image.budget.spend(1, _FUNCTION_BYTES)
            known = self._known[function] = [function.start]
        index = bisect_right(known, vaddr)
        start = known[index - 1]
        if start == vaddr:
            return Place.START
        position = self._decode(start, vaddr, function.end)
        if position is None:
            return Place.UNKNOWN
        if position != vaddr:
            return Place.INSIDE
        known.insert(index, vaddr)
        return Place.START

    def is_start(self, vaddr: int) -> bool:
        """Return whether an instruction of a known function starts at an address."""
        return self.place_of(vaddr) is Place.START

    def _decode(self, start: int, wanted: int, end: int) -> int | None:
        """Return the first start of an instruction from *wanted* on; None if that is unknown."""
        # An instruction of a compiler's has four bytes and more; less than two in a row are rare.
        self._image.budget.spend((wanted - start) // 2)
        size = min(wanted - start + self._architecture.longest_instruction, end - start)
        try:
            code = self._image.read(start, size)
        except ElfError:
            return None
        instruction_length = self._architecture.instruction_length
        position, distance = 0, wanted - start
        while position < distance:
            length = instruction_length(code, position)
            if length is None:
                return None
            position += length
        return start + position
