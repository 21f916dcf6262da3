"""Where functions begin and end, and how to step to their callers: the .eh_frame section."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from gilscope.dwarf_reader import DwarfReader
from gilscope.elf import ElfError, ElfImage
from gilscope.unwind import UnwindRule, unwind_rule

__all__ = ["FrameTable", "Function", "read_frame_table"]

_OMITTED: Final = 0xFF
_INDIRECT: Final = 0x80
_LENGTH_SIZE: Final = 4
_LONG_LENGTH_FOLLOWS: Final = 0xFFFFFFFF


class _Cie(NamedTuple):
    """A Common Information Entry: what the entries of many functions share."""

    code_alignment: int
    data_alignment: int
    pointer_encoding: int
    has_augmentation_size: bool
    program: bytes


class _Fde(NamedTuple):
    """A Frame Description Entry: one contiguous piece of a function."""

    start: int
    end: int
    cie: _Cie
    body: int
    """Offset in the section of what follows the address range."""
    body_end: int


class Function(NamedTuple):
    """The addresses of one contiguous piece of code, [start, end)."""

    start: int
    end: int


@dataclass(frozen=True)
class FrameTable:
    """The pieces of code that .eh_frame describes, sorted by address.

    A function that the compiler split has one piece for each of its parts.
    """

    _section: bytes
    _entries: tuple[_Fde, ...] = field(repr=False)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every piece, in ascending order."""
        return tuple(Function(entry.start, entry.end) for entry in self._entries)

    @cached_property
    def _starts(self) -> list[int]:
        return [entry.start for entry in self._entries]

    def containing(self, pc: int) -> Function | None:
        """Return the piece of code that holds an address."""
        entry = self._entry(pc)
        return None if entry is None else Function(entry.start, entry.end)

    def rule_at(self, pc: int) -> UnwindRule | None:
        """Return how to step from an instruction to the caller of its function.

        None where no entry covers the address or the rule is one that two registers and an offset
        cannot express. Raises ElfError where the entry is damaged.
        """
        entry = self._entry(pc)
        if entry is None:
            return None
        reader = DwarfReader(self._section, entry.body, entry.body_end)
        if entry.cie.has_augmentation_size:
            reader.skip(reader.unsigned_leb())
        return unwind_rule(
            entry.cie.program,
            reader.rest(),
            code_alignment=entry.cie.code_alignment,
            data_alignment=entry.cie.data_alignment,
            distance=pc - entry.start,
        )

    def _entry(self, pc: int) -> _Fde | None:
        index = bisect_right(self._starts, pc) - 1
        if index < 0 or pc >= self._entries[index].end:
            return None
        return self._entries[index]


def read_frame_table(image: ElfImage) -> FrameTable:
    """Return the frame table of an image, empty if it has none; raises ElfError."""
    section = image.section(".eh_frame")
    if section is None:
        return FrameTable(b"", ())
    content = image.section_bytes(section)
    return FrameTable(content, tuple(sorted(_entries(content, section.vaddr))))


def _entries(section: bytes, vaddr: int) -> list[_Fde]:
    cies: dict[int, _Cie] = {}
    entries: list[_Fde] = []
    reader = DwarfReader(section, 0, len(section))
    while reader.remaining >= _LENGTH_SIZE:
        record = _next_record(reader)
        if not record.remaining:
            # A terminator; files linked from crt objects have one in the middle as well.
            continue
        start = record.position
        distance = record.unsigned(4)
        if distance == 0:
            continue
        cie_start = start - distance
        cie = cies.get(cie_start)
        if cie is None:
            cie = cies[cie_start] = _read_cie(section, cie_start)
        entry = _read_fde(record, vaddr, cie)
        if entry is not None:
            entries.append(entry)
    return entries


def _next_record(reader: DwarfReader) -> DwarfReader:
    """Return a cursor over the next record's content and step over the record."""
    length = reader.unsigned(_LENGTH_SIZE)
    if length == _LONG_LENGTH_FOLLOWS:
        length = reader.unsigned(8)
    return reader.split(length)


def _read_cie(section: bytes, start: int) -> _Cie:
    reader = _next_record(DwarfReader(section, start, len(section)))
    if reader.unsigned(4) != 0:
        raise ElfError(f".eh_frame: no CIE at offset {start:#x}")
    version = reader.unsigned(1)
    augmentation = reader.zero_terminated()
    if version not in (1, 3) or (augmentation and not augmentation.startswith(b"z")):
        raise ElfError(f".eh_frame: CIE version {version}, augmentation {augmentation!r}")
    code_alignment = reader.unsigned_leb()
    data_alignment = reader.signed_leb()
    _return_address = reader.unsigned(1) if version == 1 else reader.unsigned_leb()
    encoding = 0
    if augmentation:
        size = reader.unsigned_leb()
        encoding = _pointer_encoding(augmentation, reader.split(size))
    return _Cie(code_alignment, data_alignment, encoding, bool(augmentation), reader.rest())


def _pointer_encoding(augmentation: bytes, reader: DwarfReader) -> int:
    for letter in augmentation[1:]:
        match chr(letter):
            case "R":
                return reader.unsigned(1)
            case "P":
                personality_encoding = reader.unsigned(1)
                reader.pointer(personality_encoding & ~_INDIRECT, 0)
            case "L":
                reader.skip(1)
            case "S" | "B":
                pass
            case unknown:
                raise ElfError(f".eh_frame: augmentation letter {unknown!r}")
    return 0


def _read_fde(record: DwarfReader, vaddr: int, cie: _Cie) -> _Fde | None:
    if cie.pointer_encoding in (_OMITTED, 0x50) or cie.pointer_encoding & _INDIRECT:
        raise ElfError(f".eh_frame: pointer encoding {cie.pointer_encoding:#x}")
    start = record.pointer(cie.pointer_encoding, vaddr)
    size = record.pointer(cie.pointer_encoding & 0x07, 0)
    if size == 0:
        return None
    return _Fde(start, start + size, cie, record.position, record.end)
