"""Samples of registers and stacks, as the kernel writes them."""

import struct

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.process.threads.stack_samples import StackSample, parse_stacks

_REGISTERS = X86_64.sampled_registers
_ABI_64 = 2


def _sample(stack: bytes, copied: int) -> bytes:
    """Return one whose registers are BP 1, SP 2 and IP 3, in the order of their numbers."""
    return struct.pack("=5Q", _ABI_64, 1, 2, 3, len(stack)) + stack + struct.pack("=Q", copied)


def test_registers_and_what_was_copied_of_the_stack() -> None:
    """
    The kernel leaves room for more than a stack may have.
    """
    stack = struct.pack("=4Q", 10, 11, 12, 13)

    assert [StackSample(3, 2, 1, stack[:16])] == list(
        parse_stacks([_sample(stack, 16)], _REGISTERS)
    )


def test_samples_without_registers_or_without_a_stack() -> None:
    """
    A thread of the kernel has no registers; where nothing could be copied there is nothing.
    """
    without = struct.pack("=QQ", 0, 0)
    nothing = struct.pack("=5Q", _ABI_64, 1, 2, 3, 0)

    assert [StackSample(3, 2, 1, b"")] == list(parse_stacks([without, nothing], _REGISTERS))
    assert [] == list(parse_stacks([_sample(bytes(16), 16)[:-4], b""], _REGISTERS))


def test_words_of_the_stack() -> None:
    """
    Those that were sampled, and no others.
    """
    sample = StackSample(3, 0x1000, 1, struct.pack("=2Q", 10, 11))

    assert (10, 11) == (sample.word(0x1000), sample.word(0x1008))
    assert [None] * 3 == [sample.word(address) for address in (0xFF8, 0x1009, 0x1010)]
