"""Which request a thread serves, where its process publishes that for readers outside of it.

That is the thread context of OpenTelemetry (OTEP 4947): a variable of each thread leads to a record
that begins with the ids of trace and span. The probes read the same (`probes/gil/traces.bpf.h`).
"""

import struct
from typing import Final

from gilscope.model.moment.seen import ServedRequest
from gilscope.process.files.thread_variables import VariablePlace
from gilscope.process.remote_read import Memory, read_bytes, read_int, read_pointer

__all__ = ["CONTEXT_VARIABLE", "read_context"]

CONTEXT_VARIABLE: Final = "otel_thread_ctx_v1"

_RECORD: Final = struct.Struct("<16s8sB")
_BLOCKS_AT: Final = 8
"""From a thread's descriptor to the table of its blocks (x86-64)."""
_NO_BLOCK: Final = (0, (1 << 64) - 1)
_IS_PUBLISHED: Final = 1


def read_context(memory: Memory, place: VariablePlace, descriptor: int) -> ServedRequest | None:
    """Return what the thread with *descriptor* serves, None if it serves nothing that is known.

    Raises TornRead where the thread has ended, and OSError where its process has.
    """
    variable = _variable(memory, place, descriptor)
    record = 0 if variable is None else read_pointer(memory, variable)
    if not record:
        return None
    trace, span, valid = _RECORD.unpack(read_bytes(memory, record, _RECORD.size))
    if valid != _IS_PUBLISHED or not any(trace):
        return None
    return ServedRequest(trace.hex(), span.hex())


def _variable(memory: Memory, place: VariablePlace, descriptor: int) -> int | None:
    if not place.module:
        return descriptor + place.offset
    blocks = read_pointer(memory, descriptor + _BLOCKS_AT)
    if place.module > read_int(memory, blocks + place.length_at, 8):
        return None
    entry = read_bytes(memory, blocks + place.module * place.entry_size, 8)
    block = int.from_bytes(entry, "little")
    return None if block in _NO_BLOCK else block + place.offset
