"""What kernels ask of a program that newer ones have given up asking: found without such a kernel.

Both are `EINVAL` at once, before the verifier follows a single path, and wherever they stand: also
in code that a parameter switches off.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["atomics_beyond_add", "refused_back_edges"]

_INSTRUCTION = struct.Struct("<BBhi")
_CLASS, _MODE, _OPERATION = 0x07, 0xE0, 0xF0
_STX, _JMP, _JMP32 = 0x03, 0x05, 0x06
_ATOMIC = 0xC0
_ADD = 0
_JA, _CALL, _EXIT = 0x00, 0x80, 0x90


@dataclass(slots=True)
class _Step:
    """An instruction on the way from the first one, and where it may lead that was not tried."""

    at: int
    untried: list[tuple[int, bool]]


def atomics_beyond_add(program: bytes) -> list[int]:
    """Return the places of atomic instructions that Linux has since 5.12 only.

    These are all but an addition whose result nobody asks for. Older kernels say "BPF_STX uses
    reserved fields".
    """
    return [
        at
        for at, (code, _, _, immediate) in enumerate(_instructions(program))
        if code & _CLASS == _STX and code & _MODE == _ATOMIC and immediate != _ADD
    ]


def refused_back_edges(program: bytes) -> list[tuple[int, int]]:
    """Return where the program runs on into the beginning of a loop that it is in.

    A jump may do that on every kernel. Another instruction, after which the next one simply
    follows, may since Linux 6.7 (commit 10e14e9652bf, "bpf: fix control-flow graph checking in
    privileged mode"); before, it is a "back-edge". Which edges are met on the way depends on the
    order in which the kernel tries them: as here, what follows comes before what is jumped to.
    """
    code = list(_instructions(program))
    on_the_way, done, refused = {0}, set[int](), list[tuple[int, int]]()
    steps = [_Step(0, _edges(code, 0))]
    while steps:
        step = steps[-1]
        if not step.untried:
            on_the_way.discard(step.at)
            done.add(step.at)
            steps.pop()
            continue
        to, may_return = step.untried.pop(0)
        if to in on_the_way and not may_return:
            refused.append((step.at, to))
        elif to not in on_the_way and to not in done:
            on_the_way.add(to)
            steps.append(_Step(to, _edges(code, to)))
    return refused


def _edges(code: list[tuple[int, int, int, int]], at: int) -> list[tuple[int, bool]]:
    operation, _, offset, _ = code[at]
    if operation & _CLASS not in (_JMP, _JMP32) or operation & _OPERATION == _CALL:
        return [(at + 1, False)]
    if operation & _OPERATION == _EXIT:
        return []
    if operation & _OPERATION == _JA:
        return [(at + offset + 1, True)]
    return [(at + 1, True), (at + offset + 1, True)]


def _instructions(program: bytes) -> Iterator[tuple[int, int, int, int]]:
    return _INSTRUCTION.iter_unpack(program)
