"""Evaluates the call frame instructions of one function up to one address (DWARF 5, 6.4).

Our own, because one row is wanted of a few functions, and nothing of the others: that takes 25 us
a row. With pyelftools it takes 85 us to make the whole table of a function, after 0.95 s and 38 MB
for the section, and GNU_args_size ends it. Tests hold the rows against pyelftools.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from gilscope.arch.base import Registers
from gilscope.elf.dwarf import DwarfReader
from gilscope.elf.image import ElfError
from gilscope.values import dataclass

__all__ = ["Alignment", "UnwindRule", "rule_at_entry", "unwind_rule"]

# The two highest bits are an opcode of their own with an operand below, or zero.
_PRIMARY: Final = 0xC0
_IN_OPCODE: Final = 0x3F
_ADVANCE: Final = 0x40
_ADVANCE_SIZES: Final = {0x02: 1, 0x03: 2, 0x04: 4}

# Operands of the others: u and s are numbers, b is a block of bytes that is stepped over.
_OPERANDS: Final = {
    0x00: "",  # nop
    0x05: "uu",  # offset_extended
    0x06: "u",  # restore_extended
    0x07: "u",  # undefined
    0x08: "u",  # same_value
    0x09: "uu",  # register
    0x0A: "",  # remember_state
    0x0B: "",  # restore_state
    0x0C: "uu",  # def_cfa
    0x0D: "u",  # def_cfa_register
    0x0E: "u",  # def_cfa_offset
    0x0F: "b",  # def_cfa_expression
    0x10: "ub",  # expression
    0x11: "us",  # offset_extended_sf
    0x12: "us",  # def_cfa_sf
    0x13: "s",  # def_cfa_offset_sf
    0x14: "uu",  # val_offset
    0x15: "us",  # val_offset_sf
    0x16: "ub",  # val_expression
    0x2D: "",  # AARCH64_negate_ra_state: whether the return address is signed is not followed
    0x2E: "u",  # GNU_args_size
    0x2F: "uu",  # GNU_negative_offset_extended
}
_SAVES: Final = {0x05: 1, 0x11: 1, 0x2F: -1}
_UNTRACEABLE: Final = frozenset((0x07, 0x09, 0x10, 0x14, 0x15, 0x16))
_DEFINES_CFA: Final = frozenset((0x0C, 0x0D, 0x0E, 0x12, 0x13))
_FACTORED_CFA: Final = frozenset((0x12, 0x13))
_WHOLE_CFA: Final = frozenset((0x0C, 0x12))


# What no stack has room for: such a rule is damaged, and its numbers may have any size.
_LARGEST_FRAME: Final = 1 << 30

Program = bytes | memoryview


class Alignment(NamedTuple):
    """Factors that a CIE gives."""

    code: int
    """Bytes of code that an advance of 1 steps over."""
    data: int
    """Bytes of the stack that an offset of 1 means."""


@dataclass(frozen=True, slots=True)
class UnwindRule:
    """Where the caller's state is, seen from one instruction of a function."""

    cfa_from_frame_pointer: bool
    """The canonical frame address is counted from the frame pointer, not the stack pointer."""
    cfa_offset: int
    """Bytes from that register to the canonical frame address."""
    saved_frame_pointer_offset: int | None
    """Where the caller's is saved, from the canonical frame address; None: it is still in place."""
    return_address_offset: int | None = -8
    """Where the return address is, likewise; None: in its register, if the processor has one."""


def rule_at_entry(registers: Registers) -> UnwindRule:
    """Return the rule where a function begins: nothing is saved but what the call has left."""
    return UnwindRule(
        cfa_from_frame_pointer=False,
        cfa_offset=registers.cfa_offset_at_entry,
        saved_frame_pointer_offset=None,
        return_address_offset=registers.return_address_offset,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The part of a row of the unwind table that leads to the caller's state."""

    register: int
    offset: int = 0
    cfa_is_expression: bool = False
    saved: tuple[tuple[int, int | None], ...] = ()
    """Register and its offset from the CFA, None where it cannot be told; absent: unchanged."""

    def with_saved(self, register: int, offset: int | None) -> "_Row":
        return replace(self, saved=(*self.without(register).saved, (register, offset)))

    def without(self, register: int) -> "_Row":
        return replace(self, saved=tuple(entry for entry in self.saved if entry[0] != register))


def unwind_rule(
    initial: Program,
    program: Program,
    *,
    registers: Registers,
    alignment: Alignment,
    distance: int,
) -> UnwindRule | None:
    """Return the rule *distance* bytes into a function; None where it is not a simple one.

    *initial* and *program* are the instructions of the CIE and of the FDE. Raises ElfError where
    they are damaged.
    """
    machine = _Machine(registers, alignment)
    machine.run(initial, None)
    machine.keep_as_initial()
    machine.run(program, distance)
    return _as_rule(machine.row, registers)


def _as_rule(row: _Row, registers: Registers) -> UnwindRule | None:
    saved = dict(row.saved)
    simple = (
        not row.cfa_is_expression
        and row.register in (registers.stack_pointer, registers.frame_pointer)
        and _is_simple_return(saved, registers)
        and abs(row.offset) <= _LARGEST_FRAME
    )
    frame_pointer = saved.get(registers.frame_pointer, 0)
    if not simple or frame_pointer is None or abs(frame_pointer) > _LARGEST_FRAME:
        return None
    uses_frame_pointer = row.register == registers.frame_pointer
    return UnwindRule(
        uses_frame_pointer,
        row.offset,
        saved.get(registers.frame_pointer),
        saved.get(registers.return_address),
    )


def _is_simple_return(saved: Mapping[int, int | None], registers: Registers) -> bool:
    """Whether the return address is where every call leaves it, or may be anywhere and is known."""
    place = saved.get(registers.return_address, 0)
    if registers.return_address_offset is not None:
        return place == registers.return_address_offset
    return place is not None and abs(place) <= _LARGEST_FRAME


class _Machine:
    """Runs call frame instructions over one row."""

    def __init__(self, registers: Registers, alignment: Alignment) -> None:
        self.row = self._initial = _Row(registers.stack_pointer)
        self._traced = (registers.frame_pointer, registers.return_address)
        self._kept: list[_Row] = []
        self._code_alignment, self._data_alignment = alignment

    def keep_as_initial(self) -> None:
        """Let DW_CFA_restore return to what has been set up to here."""
        self._initial = self.row

    def run(self, program: Program, distance: int | None) -> None:
        """Execute until the location would pass *distance*; None: to the end."""
        reader = DwarfReader(memoryview(program), 0, len(program))
        location = 0
        while reader.remaining:
            opcode = reader.unsigned(1)
            advance = self._advance(opcode, reader)
            if advance is None:
                self._execute(opcode, reader)
                continue
            location += advance
            if distance is not None and location > distance:
                return

    def _advance(self, opcode: int, reader: DwarfReader) -> int | None:
        """Return the bytes of code that an instruction steps over; None if it is another one."""
        if opcode & _PRIMARY == _ADVANCE:
            return (opcode & _IN_OPCODE) * self._code_alignment
        size = _ADVANCE_SIZES.get(opcode)
        return None if size is None else reader.unsigned(size) * self._code_alignment

    def _execute(self, opcode: int, reader: DwarfReader) -> None:
        register = opcode & _IN_OPCODE
        match opcode & _PRIMARY:
            case 0x80:
                self._save(register, reader.unsigned_leb() * self._data_alignment)
            case 0xC0:
                self._restore(register)
            case _ if opcode in _OPERANDS:
                self._execute_extended(opcode, _read_operands(_OPERANDS[opcode], reader))
            case _:
                raise ElfError(f"unwind table: unknown instruction {opcode:#x}")

    def _execute_extended(self, opcode: int, operands: list[int]) -> None:
        if opcode in _SAVES:
            register, factored = operands
            self._save(register, factored * _SAVES[opcode] * self._data_alignment)
        elif opcode in _UNTRACEABLE:
            self._save(operands[0], None)
        elif opcode in _DEFINES_CFA:
            self._define_cfa(opcode, operands)
        else:
            self._restore_extended(opcode, operands)

    def _define_cfa(self, opcode: int, operands: list[int]) -> None:
        scale = self._data_alignment if opcode in _FACTORED_CFA else 1
        match opcode:
            case 0x0C | 0x12:
                register, offset = operands
                offset *= scale
            case 0x0D:
                register, offset = operands[0], self.row.offset
            case _:
                register, offset = self.row.register, operands[0] * scale
        # An instruction that sets one half of the pair leaves the other: after an expression
        # there is none.
        is_expression = self.row.cfa_is_expression and opcode not in _WHOLE_CFA
        self.row = replace(
            self.row, register=register, offset=offset, cfa_is_expression=is_expression
        )

    def _restore_extended(self, opcode: int, operands: list[int]) -> None:
        match opcode:
            case 0x06:
                self._restore(operands[0])
            case 0x08:
                self.row = self.row.without(operands[0])
            case 0x0A:
                self._kept.append(self.row)
            case 0x0B:
                if not self._kept:
                    raise ElfError("unwind table: a state is restored that was never kept")
                self.row = self._kept.pop()
            case 0x0F:
                self.row = replace(self.row, cfa_is_expression=True)

    def _save(self, register: int, offset: int | None) -> None:
        if register in self._traced:
            self.row = self.row.with_saved(register, offset)

    def _restore(self, register: int) -> None:
        initial = dict(self._initial.saved)
        if register in initial:
            self.row = self.row.with_saved(register, initial[register])
        else:
            self.row = self.row.without(register)


def _read_operands(kinds: str, reader: DwarfReader) -> list[int]:
    operands = []
    for kind in kinds:
        if kind == "b":
            reader.skip(reader.unsigned_leb())
        else:
            operands.append(reader.signed_leb() if kind == "s" else reader.unsigned_leb())
    return operands
