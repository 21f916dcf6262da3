"""Tells which AArch64 instructions are cheap to probe, and steps over others to one that is."""

from typing import Final

from gilscope.arch.aarch64.words import (
    WORD,
    adr_of,
    is_authenticated,
    is_branch,
    is_comparison,
    is_conditional_branch,
    is_load_literal,
    page_of,
    word_at,
)

__all__ = [
    "LOOKAHEAD",
    "STRAIGHT_LINE",
    "distance_to_emulated",
    "distance_to_jump",
    "instruction_length",
    "is_emulated",
]

STRAIGHT_LINE: Final = 8 * WORD
"""Bytes that are read."""
LOOKAHEAD: Final = 2 * WORD
"""Bytes behind a call that decide where to put the probe that sees its result."""
_SIMPLE: Final = frozenset((0b0100, 0b0110, 0b1100, 0b1110, 0b0101, 0b1101, 0b0111, 0b1111, 8, 9))
"""Groups of instructions that load and store, or compute with registers or constants."""


def instruction_length(code: bytes, position: int) -> int | None:
    """Return the bytes of the instruction at a position; None where there is none."""
    if position + WORD > len(code):
        return None
    # Below 0x10000 are those that are never to be executed: they are padding, or data.
    return WORD if word_at(code, position) >> 16 else None


def is_emulated(code: bytes) -> bool:
    """Return whether the kernel simulates the first instruction of *code* under a uprobe.

    That is a branch or an address (arch/arm64/kernel/probes/decode-insn.c). It single-steps the
    rest. Of what newer kernels have learnt to simulate it is taken that they do not.
    """
    if len(code) < WORD:
        return False
    word = word_at(code, 0)
    is_address = adr_of(word, 0) is not None or page_of(word, 0) is not None
    return is_address or (is_branch(word) and not is_authenticated(word))


def distance_to_emulated(code: bytes) -> int:
    """Return the bytes to the first instruction that the kernel simulates, 0 for an unknown way.

    Only instructions that compute, load and store are stepped over: control can't leave the way.
    """
    for position in range(0, len(code) - WORD + 1, WORD):
        word = word_at(code, position)
        if is_emulated(code[position:]):
            return position
        if not _is_simple(word):
            return 0
    return 0


def distance_to_jump(code: bytes) -> int:
    """Return the bytes from a call's end to a conditional jump on its result, 0 for none.

    *code* is what follows the call: a comparison of the result, which the kernel would have to
    single-step, and the jump. A jump that compares by itself comes at once.
    """
    if len(code) < LOOKAHEAD:
        return 0
    compared, jump = word_at(code, 0), word_at(code, WORD)
    return WORD if is_comparison(compared) and is_conditional_branch(jump) else 0


def _is_simple(word: int) -> bool:
    """Return whether it computes, loads or stores: C4.1, op0."""
    return word >> 25 & 15 in _SIMPLE and not is_load_literal(word)
