"""The chain of nodes that PyPy keeps for its own profiler: a stack without frames.

There is one for each function that is interpreted, and one for each entry into code that the JIT
has made, innermost first. Nodes lie on the C stack and never move.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from gilscope.process.remote_read import Memory, TornRead, read_bytes, read_pointer

__all__ = ["NO_INSTRUCTION", "NodeKind", "Place", "place_of", "walk"]

_NODE = struct.Struct("<QqQ")
_KIND_BITS = 3
_WORD = 8

NO_INSTRUCTION = 0xFFFFFFFF
"""In place of an instruction where the probes found no frame for a node."""


class NodeKind(IntEnum):
    """What a node is about (vmprof_stack.h)."""

    CODE = 1
    """Interpreted code, by its number."""
    BLACKHOLE = 2
    """Code that the JIT has just left."""
    JITTED = 3
    """Code that the JIT has made: the address that it continues at."""
    TRACING = 4
    """Code that the JIT follows, to compile it. In none of the builds that were sampled was a node
    of this kind seen, nor of the next: `own_work` tells both."""
    GC = 5


class Place(NamedTuple):
    """What one node says."""

    kind: NodeKind
    value: int


def place_of(noted: int) -> Place | None:
    """Return what the probes have noted as one number; None for what no node says."""
    try:
        return Place(NodeKind(noted & ((1 << _KIND_BITS) - 1)), noted >> _KIND_BITS)
    except ValueError:
        return None


def walk(memory: Memory, stack: int, most: int) -> Iterator[Place]:
    """Yield the innermost *most* places of the stack that the pointer at *stack* leads to.

    Raises TornRead where there is no node, or OSError.
    """
    address = read_pointer(memory, stack)
    for _ in range(most):
        if not address:
            return
        following, value, number = _NODE.unpack(read_bytes(memory, address, _NODE.size))
        try:
            kind = NodeKind(number)
        except ValueError as error:
            raise TornRead(f"no node of a stack at {address:#x}") from error
        if kind is NodeKind.JITTED:
            value = int.from_bytes(read_bytes(memory, value - _WORD, _WORD), "little")
        yield Place(kind, value)
        address = following
