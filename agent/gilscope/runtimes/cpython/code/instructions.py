"""Tells at which of the instructions of its code a frame stands."""

import struct

from gilscope.process.remote_read import TornRead, read_bytes, read_int, read_pointer
from gilscope.runtimes.cpython.code.line_table import LineTableForm
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["offset_of"]

_UNIT = 2
_HALF = (1 << 32) - 1
_MOST_COPIES = 1 << 16
"""Of the instructions of a code object: one for each thread that has run it."""


def offset_of(runtime: Runtime, code: int, size: int, instruction: int) -> int | None:
    """Return where *instruction* is among the *size* bytes of the code object at *code*.

    Below 0 in a frame that has not begun. None: it is none of this code's. *instruction* is 32 bits
    of what the frame holds: `f_lasti` up to 3.10, later its pointer to an instruction less *code*.
    """
    layout = runtime.layout
    if layout.instruction_is_pointer:
        offset = _signed(instruction - layout.code_bytecode)
    else:
        # From 3.10 on f_lasti counts instructions instead of bytes (bpo-27129).
        unit = _UNIT if layout.line_table_form is LineTableForm.RANGES else 1
        offset = _signed(instruction) * unit
    if _is_within(offset, size):
        return offset
    if layout.code_thread_bytecode is None:
        return None
    try:
        starts = _copies(runtime, code + layout.code_thread_bytecode)
    except (TornRead, OSError):
        return None
    offsets = (_signed(instruction + code - start) for start in starts if start)
    return next((each for each in offsets if _is_within(each, size)), None)


def _copies(runtime: Runtime, member: int) -> tuple[int, ...]:
    """Return where the copies of instructions begin, 0 for a thread that has none."""
    copies = read_pointer(runtime.memory, member)
    count = read_int(runtime.memory, copies, 8)
    if not 0 < count <= _MOST_COPIES:
        raise TornRead(f"no copies of instructions at {copies:#x}: {count}")
    return struct.unpack(f"<{count}Q", read_bytes(runtime.memory, copies + 8, 8 * count))


def _is_within(offset: int, size: int) -> bool:
    # A frame that has not begun stands before its first instruction.
    return -_UNIT <= offset < size


def _signed(number: int) -> int:
    """Return the lower half of *number* as a number with a sign."""
    return (number + (1 << 31) & _HALF) - (1 << 31)
