"""Tells a code object from another one that has got its memory.

The probes note the identity of every code object that they meet on a stack. Its name is read later
from the memory of the process; the program may have dropped the code by then and put another there.
"""

import struct

from gilscope.gil.layout import Layout
from gilscope.gil.memory import TornRead, read_bytes, read_int
from gilscope.gil.runtime import Runtime

__all__ = ["code_pointers", "is_code"]

_POINTER = 8
_POINTERS_SIZE = 4 * _POINTER
_CONTENT_SIZE = 16
"""Of a line table: so much memory every bytes object has."""
_STR_HASH = 24
"""In a str: its hash, -1 until somebody has asked for it."""
_NOT_HASHED = (1 << 32) - 1
_HALF, _WHOLE = (1 << 32) - 1, (1 << 64) - 1
_MULTIPLIER = 0x9E3779B97F4A7C15


def code_pointers(layout: Layout) -> tuple[int, int]:
    """Return offset and size, in a code object, of its pointers from file name to line table."""
    return layout.code_file, layout.code_line_table + _POINTER - layout.code_file


def is_code(runtime: Runtime, code: int, identity: int) -> bool:
    """Return whether the code object at *code* is the one that the probes know by *identity*."""
    memory, layout = runtime.memory, runtime.layout
    offset, size = code_pointers(layout)
    try:
        pointers = read_bytes(memory, code + offset, size)
        # From the file name on: plain name, since 3.11 qualified name, line table.
        _, name, *_, line_table = struct.unpack(f"<{size // _POINTER}Q", pointers)
        content = read_bytes(memory, line_table + layout.bytes_content, _CONTENT_SIZE)
        name_hash = read_int(memory, name + _STR_HASH, 8) & _HALF
    except (TornRead, OSError):
        return False
    mixed = 0
    for (word,) in struct.iter_unpack("<Q", pointers.ljust(_POINTERS_SIZE, b"\0") + content):
        mixed = _mixed(mixed, word)
    # Somebody may have asked for the hash only after the probe had been there.
    return any(identity == _mixed(mixed, known) & _HALF for known in (name_hash, _NOT_HASHED))


def _mixed(value: int, added: int) -> int:
    value = (value ^ added) * _MULTIPLIER & _WHOLE
    return value ^ value >> 32
