"""From call to caller, through stacks that are made here."""

import struct

from gilscope.elf.cfi import UnwindRule
from gilscope.process.threads.stack_samples import StackSample
from gilscope.process.threads.unwind import unwound

_AT = 0x7000


def _sample(instruction: int, frame_pointer: int, *words: int) -> StackSample:
    return StackSample(instruction, _AT, frame_pointer, struct.pack(f"={len(words)}Q", *words))


def test_by_rules_of_both_registers() -> None:
    """
    The first function saves two words; its caller counts from the frame pointer among them.
    """
    frame_of_caller = _AT + 5 * 8
    sample = _sample(0x100, 0xDEAD, 1, frame_of_caller, 0x201, 2, 3, 0, 0x301)
    rules = {
        0x100: UnwindRule(False, 3 * 8, -2 * 8),
        0x200: UnwindRule(True, 2 * 8, -2 * 8),
    }

    assert (0x100, 0x200, 0x300) == unwound(sample, rules.get)


def test_a_function_that_is_about_to_return() -> None:
    """
    It has popped the frame pointer: the table still tells the place, which is below the stack.
    """
    frame_of_caller = _AT + 3 * 8
    sample = _sample(0x100, frame_of_caller, 7, 0x201, 2, 0, 0x301)
    rules = {0x100: UnwindRule(False, 2 * 8, -4 * 8), 0x200: UnwindRule(True, 2 * 8, -2 * 8)}

    assert (0x100, 0x200, 0x300) == unwound(sample, rules.get)


def test_by_frame_pointers_where_there_is_no_table() -> None:
    """
    Each frame begins with the caller's frame pointer, below the return address.
    """
    sample = _sample(0x100, _AT + 8, 1, _AT + 4 * 8, 0x201, 2, 0, 0x301)

    assert (0x100, 0x200, 0x300) == unwound(sample, lambda _: None)


def test_it_ends_where_nothing_leads_further() -> None:
    """
    At a return address of zero, outside of what was sampled, and where it would lead downwards.
    """
    outside = UnwindRule(False, 0x10000, None)
    downwards = UnwindRule(False, -8, None)
    in_place = UnwindRule(False, 8, None)

    assert (0x100,) == unwound(_sample(0x100, 0, 5), {0x100: outside}.get)
    assert (0x100,) == unwound(_sample(0x100, 0, 5), {0x100: downwards}.get)
    assert (0x100,) == unwound(_sample(0x100, 0, 0), {0x100: in_place}.get)
    assert (0x100, 4) == unwound(_sample(0x100, 0, 5), {0x100: in_place}.get)


def test_a_return_address_is_where_the_rule_says() -> None:
    """
    Beside the saved frame pointer, or nowhere on the stack: there the way ends.
    """
    sample = _sample(0x100, 0xDEAD, 0, 0x201, 2, 3, 4)
    in_register = UnwindRule(False, 0x10, None, return_address_offset=None)
    rules = {0x100: UnwindRule(False, 0x20, 0, return_address_offset=-0x18), 0x200: in_register}

    assert (0x100, 0x200) == unwound(sample, rules.get)


def test_no_more_calls_than_asked_for() -> None:
    """
    However deep the recursion is.
    """
    in_place = UnwindRule(False, 8, None)
    sample = _sample(0x100, 0, *[0x101] * 50)

    assert (0x100,) * 7 == unwound(sample, lambda _: in_place, most=7)
