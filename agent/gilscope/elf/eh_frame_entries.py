"""Reads single entries of the .eh_frame section, by where they begin in it."""

from typing import Final, NamedTuple

from gilscope.arch.base import Registers
from gilscope.elf.budget import ElfBudget
from gilscope.elf.cfi import Alignment, UnwindRule, unwind_rule
from gilscope.elf.dwarf import DwarfReader
from gilscope.elf.image import ElfError

__all__ = ["FrameEntries"]

_OMITTED: Final = 0xFF
_INDIRECT: Final = 0x80
_LENGTH_SIZE: Final = 4
_LONG_LENGTH_FOLLOWS: Final = 0xFFFFFFFF
_FORMAT: Final = 0x07
_LONGEST_AUGMENTATION: Final = 16

_STEPS_OF_ENTRY: Final = 5
_CIE_BYTES: Final = 500


class _Cie(NamedTuple):
    """A Common Information Entry: what the entries of many functions share."""

    code_alignment: int
    data_alignment: int
    pointer_encoding: int
    has_augmentation_size: bool
    program: memoryview


class FrameEntries:
    """The section's entries. What many share is read once."""

    def __init__(
        self, section: memoryview, vaddr: int, registers: Registers, budget: ElfBudget
    ) -> None:
        """Read from *section*, which is loaded at *vaddr*."""
        self._section = section
        self._vaddr = vaddr
        self._budget = budget
        self._registers = registers
        self._cies: dict[int, _Cie] = {}

    def span(self, position: int) -> tuple[tuple[int, int] | None, int]:
        """Return start and size of the code that the entry at *position* is about, and its end.

        None: it is an entry that others share. Raises ElfError where it is damaged.
        """
        reader = DwarfReader(self._section, position, len(self._section))
        self._budget.spend(_STEPS_OF_ENTRY)
        record = _next_record(reader)
        # A terminator is empty; files linked from crt objects have one in the middle as well.
        cie = self._cie_of(record) if record.remaining else None
        span = None if cie is None else self._span(record, cie)
        return span, reader.position

    def rule(self, position: int, pc: int) -> UnwindRule | None:
        """Return how to step from the instruction at *pc*, by the entry at *position*.

        None where the entry is about other code, or the rule is one that two registers and an
        offset cannot express. Raises ElfError where it is damaged.
        """
        record = _next_record(DwarfReader(self._section, position, len(self._section)))
        cie = self._cie_of(record) if record.remaining else None
        if cie is None:
            return None
        start, size = self._span(record, cie)
        if not 0 <= pc - start < size:
            return None
        if cie.has_augmentation_size:
            record.skip(record.unsigned_leb())
        program = record.rest()
        # No instruction is shorter than a byte.
        self._budget.spend(len(cie.program) + len(program))
        return unwind_rule(
            cie.program,
            program,
            registers=self._registers,
            alignment=Alignment(cie.code_alignment, cie.data_alignment),
            distance=pc - start,
        )

    def _span(self, record: DwarfReader, cie: _Cie) -> tuple[int, int]:
        if cie.pointer_encoding in (_OMITTED, 0x50) or cie.pointer_encoding & _INDIRECT:
            raise ElfError(f".eh_frame: pointer encoding {cie.pointer_encoding:#x}")
        start = record.pointer(cie.pointer_encoding, self._vaddr)
        return start, record.pointer(cie.pointer_encoding & _FORMAT, 0)

    def _cie_of(self, record: DwarfReader) -> _Cie | None:
        """Return what an FDE shares with others and step over that; None for a CIE."""
        start = record.position
        distance = record.unsigned(4)
        if distance == 0:
            return None
        cie_start = start - distance
        cie = self._cies.get(cie_start)
        if cie is None:
            self._budget.spend(_STEPS_OF_ENTRY, _CIE_BYTES)
            cie = self._cies[cie_start] = _read_cie(self._section, cie_start)
        return cie


def _next_record(reader: DwarfReader) -> DwarfReader:
    """Return a cursor over the next record's content and step over the record."""
    length = reader.unsigned(_LENGTH_SIZE)
    if length == _LONG_LENGTH_FOLLOWS:
        length = reader.unsigned(8)
    return reader.split(length)


def _read_cie(section: memoryview, start: int) -> _Cie:
    reader = _next_record(DwarfReader(section, start, len(section)))
    if reader.unsigned(4) != 0:
        raise ElfError(f".eh_frame: no CIE at offset {start:#x}")
    version = reader.unsigned(1)
    augmentation = reader.zero_terminated(_LONGEST_AUGMENTATION)
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
