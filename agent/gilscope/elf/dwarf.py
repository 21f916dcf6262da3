"""A cursor over DWARF-encoded bytes that never reads beyond its end."""

from typing import Final

from gilscope.elf.image import ElfError

__all__ = ["DwarfReader"]

_FORMAT_MASK: Final = 0x0F
_RELATION_MASK: Final = 0x70
_ABSOLUTE: Final = 0x00
_PC_RELATIVE: Final = 0x10
# Ten bytes of seven bits hold any number of 64 bits.
_LONGEST_NUMBER_BITS: Final = 70
_ADDRESS_MASK: Final = (1 << 64) - 1

# DW_EH_PE_* formats -> size in bytes and whether signed.
_FORMATS: Final = {
    0x00: (8, False),
    0x02: (2, False),
    0x03: (4, False),
    0x04: (8, False),
    0x0A: (2, True),
    0x0B: (4, True),
    0x0C: (8, True),
}


class DwarfReader:
    """Reads forward through ``section[position:end]``; raises ElfError at its end."""

    __slots__ = ("_section", "end", "position")

    def __init__(self, section: bytes | memoryview, position: int, end: int) -> None:
        if not 0 <= position <= end <= len(section):
            raise ElfError(f"unwind table: no bytes {position:#x} to {end:#x}")
        self._section = memoryview(section)
        self.position = position
        self.end = end

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self.end - self.position

    def skip(self, size: int) -> None:
        """Step over *size* bytes."""
        if not 0 <= size <= self.remaining:
            raise ElfError(f"unwind table: truncated at offset {self.position:#x}")
        self.position += size

    def take(self, size: int) -> memoryview:
        """Return the next *size* bytes."""
        start = self.position
        self.skip(size)
        return self._section[start : self.position]

    def split(self, size: int) -> "DwarfReader":
        """Return a cursor over the next *size* bytes alone and step over them."""
        start = self.position
        self.skip(size)
        return DwarfReader(self._section, start, self.position)

    def rest(self) -> memoryview:
        """Return all bytes not read yet."""
        return self.take(self.remaining)

    def unsigned(self, size: int) -> int:
        """Return an unsigned integer of *size* bytes."""
        return int.from_bytes(self.take(size), "little")

    def signed(self, size: int) -> int:
        """Return a signed integer of *size* bytes."""
        return int.from_bytes(self.take(size), "little", signed=True)

    def unsigned_leb(self) -> int:
        """Return an unsigned LEB128 number."""
        return self._leb()[0]

    def signed_leb(self) -> int:
        """Return a signed LEB128 number."""
        value, bits = self._leb()
        return value - (1 << bits) if value >> (bits - 1) else value

    def zero_terminated(self, most: int) -> bytes:
        """Return the bytes up to the next zero, *most* of them, and step over it."""
        text = bytes(self._section[self.position : min(self.position + most + 1, self.end)])
        found = text.find(b"\0")
        if found < 0:
            raise ElfError(f"unwind table: no end of string after offset {self.position:#x}")
        self.skip(found + 1)
        return text[:found]

    def pointer(self, encoding: int, section_vaddr: int) -> int:
        """Return a pointer in one of the DW_EH_PE_* encodings."""
        relation = encoding & _RELATION_MASK
        layout = _FORMATS.get(encoding & _FORMAT_MASK)
        if layout is None or relation not in (_ABSOLUTE, _PC_RELATIVE):
            raise ElfError(f"unwind table: pointer encoding {encoding:#x}")
        size, is_signed = layout
        base = section_vaddr + self.position if relation == _PC_RELATIVE else 0
        value = self.signed(size) if is_signed else self.unsigned(size)
        return (base + value) & _ADDRESS_MASK

    def _leb(self) -> tuple[int, int]:
        value = bits = 0
        while bits < _LONGEST_NUMBER_BITS:
            byte = self.unsigned(1)
            value |= (byte & 0x7F) << bits
            bits += 7
            if not byte & 0x80:
                return value, bits
        raise ElfError(f"unwind table: endless number before offset {self.position:#x}")
