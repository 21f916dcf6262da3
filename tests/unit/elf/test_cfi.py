"""Rows of the unwind table where a call leaves the return address in a register."""

from gilscope.arch.aarch64.architecture import AARCH64
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.cfi import Alignment, UnwindRule, rule_at_entry, unwind_rule

_CIE = bytes([0x0C, 31, 0])  # def_cfa sp, 0
_SIGNS = bytes([0x2D])  # AARCH64_negate_ra_state
_PROLOGUE = bytes([0x41, 0x0E, 32, 0x80 | 29, 4, 0x80 | 30, 3])
"""One instruction later: the frame has 32 bytes; x29 is saved in the lowest, x30 above it."""


def _rule(program: bytes, distance: int, initial: bytes = _CIE) -> UnwindRule | None:
    return unwind_rule(
        initial,
        program,
        registers=AARCH64.registers,
        alignment=Alignment(code=4, data=-8),
        distance=distance,
    )


def test_a_function_begins_with_the_address_in_its_register() -> None:
    """
    And on x86-64 with the address on the stack.
    """
    entry = UnwindRule(False, 0, None, return_address_offset=None)

    assert entry == rule_at_entry(AARCH64.registers) == _rule(_PROLOGUE, 0)
    assert UnwindRule(False, 8, None, return_address_offset=-8) == rule_at_entry(X86_64.registers)


def test_a_function_saves_it_where_it_likes() -> None:
    """
    Whether it is signed does not matter.
    """
    saved = UnwindRule(False, 32, -32, return_address_offset=-24)

    assert saved == _rule(_PROLOGUE, 4)
    assert saved == _rule(_SIGNS + _PROLOGUE, 4)


def test_an_address_that_cannot_be_told_has_no_rule() -> None:
    """
    It is in another register, or beyond all stacks.
    """
    assert _rule(bytes([0x09, 30, 9]), 0) is None  # register x30, x9
    far = bytes([0x05, 30, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F])  # offset_extended x30
    assert _rule(far, 0) is None
