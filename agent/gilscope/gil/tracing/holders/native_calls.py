"""Finds the calls through which Python code came to the C code that a thread is in."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gilscope.arch.base import SampledRegisters
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.code_places import CodePlace
from gilscope.process.files.unwind_rules import UnwindRules
from gilscope.process.threads.instruction_samples import sampled_instructions
from gilscope.process.threads.stack_samples import sampled_stacks
from gilscope.process.threads.unwind import unwound

__all__ = ["Chain", "NativeCalls", "calls_to_python", "evaluates_python"]

Chain = tuple[int, ...]
"""Addresses in functions, innermost first."""

_EVALUATES: Final = {"_PyEval_EvalFrameDefault", "_PyEval_EvalFrame", "PyEval_EvalFrameEx"}
"""The functions that run Python code."""


class NativeCalls:
    """The calls of the threads of one process. One thread may use it."""

    def __init__(
        self, pid: int, mappings: CodeMappings, registers: SampledRegisters | None
    ) -> None:
        """Sample stacks with *registers*, or None: instructions alone."""
        self._registers = registers
        self._rules = UnwindRules(pid, mappings)

    def sampled(self, tid: int, for_s: float) -> tuple[Chain, ...]:
        """Return where *tid* is in the next *for_s*, each with its callers if stacks are sampled.

        Raises OSError where the thread has gone, or perf events are not permitted.
        """
        if self._registers is None:
            return tuple((address,) for address in sampled_instructions(tid, for_s))
        samples = sampled_stacks(tid, for_s, self._registers)
        return tuple(unwound(sample, self._rules.at) for sample in samples)


def evaluates_python(place: CodePlace | None) -> bool:
    """Return whether the function at *place* runs Python code."""
    return place is not None and place.function in _EVALUATES


def calls_to_python(stacks: Iterable[Sequence[CodePlace | None]]) -> tuple[str, ...]:
    """Return the callers that most of *stacks* have, up to the one that runs Python code.

    Each with its file, of which functions without a name are told once.
    """
    chains = Counter(tuple(_names(stack)) for stack in stacks)
    return chains.most_common(1)[0][0] if chains else ()


def _names(stack: Sequence[CodePlace | None]) -> Iterator[str]:
    before = None
    for place in stack:
        if place is None or evaluates_python(place):
            return
        name = f"{place.module} {place.function}".rstrip()
        if name != before:
            yield name
        before = name
