"""Follows a sampled stack from call to caller."""

from collections.abc import Callable
from typing import Final

from gilscope.elf.cfi import UnwindRule
from gilscope.process.threads.stack_samples import StackSample

__all__ = ["MOST_CALLS", "unwound"]

MOST_CALLS: Final = 64
_WORD: Final = 8

Rules = Callable[[int], UnwindRule | None]
"""How to step from the code at an address to its caller; None: no table tells it."""


def unwound(sample: StackSample, rule_at: Rules, most: int = MOST_CALLS) -> tuple[int, ...]:
    """Return addresses in the functions of *sample*, innermost first, *most* of them.

    The first is the sampled instruction; the others lie in the calls. Where no table tells how to
    step, the function is taken to keep its caller's frame pointer as compilers do that are told
    to. What neither leads out of ends the stack, which may be too early, and is never another one.
    """
    found = [sample.instruction]
    stack_pointer, frame_pointer = sample.stack_pointer, sample.frame_pointer
    while len(found) < most:
        saved: int | None
        rule = rule_at(found[-1])
        if rule is None:
            cfa, saved = frame_pointer + 2 * _WORD, frame_pointer
            caller = sample.word(cfa - _WORD)
        else:
            base = frame_pointer if rule.cfa_from_frame_pointer else stack_pointer
            cfa = base + rule.cfa_offset
            saved = _saved_at(rule, cfa, stack_pointer)
            caller = _caller(sample, rule, cfa)
        kept = frame_pointer if saved is None else sample.word(saved)
        # A stack grows downwards: a caller's frame lies above.
        if not caller or kept is None or cfa <= stack_pointer:
            break
        stack_pointer, frame_pointer = cfa, kept
        # The address behind a call may belong to the next function already.
        found.append(caller - 1)
    return tuple(found)


def _caller(sample: StackSample, rule: UnwindRule, cfa: int) -> int | None:
    """Return the address that a function returns to; None: it is not on the stack."""
    offset = rule.return_address_offset
    return None if offset is None else sample.word(cfa + offset)


def _saved_at(rule: UnwindRule, cfa: int, stack_pointer: int) -> int | None:
    """Return where the caller's frame pointer is saved; None: it is in place."""
    offset = rule.saved_frame_pointer_offset
    # A function that is about to return has taken it back. Compilers do not tell that in tables:
    # the place is below the stack then.
    return None if offset is None or cfa + offset < stack_pointer else cfa + offset
