"""Samples of a thread's registers and of the top of its stack, by which its callers are found."""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from gilscope.arch.base import SampledRegisters
from gilscope.process.threads.thread_event import Sampling, recorded
from gilscope.values import dataclass

__all__ = ["STACK_BYTES", "StackSample", "parse_stacks", "sampled_stacks"]

_SAMPLE_REGS_USER, _SAMPLE_STACK_USER = 1 << 12, 1 << 13
_PERIOD_NS: Final = 250_000
STACK_BYTES: Final = 16_384
"""Of each sample: the calls between Python's evaluation and C code that computes are less deep."""
_PAGES: Final = 32
_NUMBER: Final = struct.Struct("=Q")
_THREE: Final = struct.Struct("=QQQ")
_NO_ABI = 0


@dataclass(frozen=True, slots=True)
class StackSample:
    """Where a thread was, and what it had on its stack."""

    instruction: int
    stack_pointer: int
    frame_pointer: int
    stack: bytes
    """From the stack pointer upwards."""

    def word(self, address: int) -> int | None:
        """Return the word at *address* of the stack; None: it is not of what was sampled."""
        at = address - self.stack_pointer
        if not 0 <= at <= len(self.stack) - _NUMBER.size:
            return None
        return int(_NUMBER.unpack_from(self.stack, at)[0])


def sampled_stacks(tid: int, for_s: float, registers: SampledRegisters) -> tuple[StackSample, ...]:
    """Return where *tid* is for as long as that, one for each 0.25 ms that it runs.

    The kernel copies the stack in the interrupt that samples, which takes some microseconds.
    Raises OSError where the thread has gone, or perf events are not permitted.
    """
    sampling = Sampling(
        period_ns=_PERIOD_NS,
        what=_SAMPLE_REGS_USER | _SAMPLE_STACK_USER,
        registers=sum(1 << number for number in registers),
        stack_bytes=STACK_BYTES,
    )
    return tuple(parse_stacks(recorded(tid, sampling, for_s, _PAGES), registers))


def parse_stacks(samples: Iterable[bytes], registers: SampledRegisters) -> Iterator[StackSample]:
    """Yield what each of *samples* holds, but for those of a thread that had no registers."""
    # The kernel writes registers in the order of their numbers.
    order = sorted(registers)
    for sample in samples:
        try:
            (abi,) = _NUMBER.unpack_from(sample)
            if abi == _NO_ABI:
                continue
            values = dict(zip(order, _THREE.unpack_from(sample, _NUMBER.size), strict=True))
            at = _NUMBER.size + _THREE.size
            (size,) = _NUMBER.unpack_from(sample, at)
            # Behind it the kernel says how much of that it could copy.
            (copied,) = _NUMBER.unpack_from(sample, at + _NUMBER.size + size) if size else (0,)
        except struct.error:
            continue
        begin = at + _NUMBER.size
        yield StackSample(
            values[registers.instruction],
            values[registers.stack_pointer],
            values[registers.frame_pointer],
            sample[begin : begin + min(size, copied)],
        )
