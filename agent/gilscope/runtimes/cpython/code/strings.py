"""Reads `str` objects from the memory of a process."""

import struct

from gilscope.process.remote_read import TornRead, read_bytes, read_int
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["read_str"]

_LONGEST_STR = 1 << 20
_LONGEST_NAME = 4096
"""Characters that are kept of a name or path."""

_KIND_MASK, _COMPACT, _ASCII = 7, 1 << 3, 1 << 4
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def read_str(runtime: Runtime, address: int) -> str:
    """Return the first characters of the str at *address*, fit to be printed; raises TornRead."""
    memory, layout = runtime.memory, runtime.layout
    if layout.is_str_bytes:
        return _read_byte_str(runtime, address)
    head = read_bytes(memory, address, max(layout.str_length + 8, layout.str_state + 4))
    length = int(struct.unpack_from("<q", head, layout.str_length)[0])
    state = int(struct.unpack_from("<I", head, layout.str_state)[0])
    flags = state >> layout.str_kind
    kind = flags & _KIND_MASK
    if not (flags & _COMPACT and kind in _CODECS and 0 <= length <= _LONGEST_STR):
        raise TornRead(f"no str at {address:#x}: state {state:#x}, length {length}")
    start = address + (layout.str_ascii if flags & _ASCII else layout.str_wide)
    content = read_bytes(memory, start, min(length, _LONGEST_NAME) * kind)
    codec = "ascii" if flags & _ASCII else _CODECS[kind]
    try:
        text = content.decode(codec, "strict" if codec == "ascii" else "surrogatepass")
    except UnicodeDecodeError as error:
        raise TornRead(f"no str at {address:#x}: {error}") from error
    # A path that is not valid UTF-8 holds lone surrogates, which nobody could print.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _read_byte_str(runtime: Runtime, address: int) -> str:
    memory, layout = runtime.memory, runtime.layout
    length = read_int(memory, address + layout.str_length, 8)
    if not 0 <= length <= _LONGEST_STR:
        raise TornRead(f"no str at {address:#x}: length {length}")
    content = read_bytes(memory, address + layout.bytes_content, min(length, _LONGEST_NAME))
    # What encoding it has nobody says; names of files are UTF-8 in nearly all of them.
    return content.decode("utf-8", "backslashreplace")
