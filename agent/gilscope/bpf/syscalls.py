"""The few system calls that keep programs and maps alive without BCC.

BCC compiles and loads the programs in a process of its own (see ``bcc_child``) and hands over file
descriptors; from then on these calls are all that is needed, so the compiler never stays resident.
Layouts are those of <linux/bpf.h>, the same on every 64-bit machine.
"""

import ctypes
import errno
import os
import struct

from gilscope.bpf.commands import Command, MapType
from gilscope.bpf.compile.object import MapDefinition
from gilscope.system.syscall import attempt, call

__all__ = [
    "create_array_map",
    "create_map",
    "freeze_map",
    "load_program",
    "map_delete",
    "map_lookup",
    "map_lookup_batch",
    "map_next_key",
    "map_update",
    "open_raw_tracepoint",
]


_BPF_EXIST = 2

_INSTRUCTION_SIZE = 8
_OBJECT_NAME_SIZE = 15


def _bpf(command: int, attributes: bytes | bytearray) -> int:
    buffer = (ctypes.c_char * len(attributes)).from_buffer_copy(attributes)
    return call("bpf", command, buffer, len(attributes))


def create_array_map() -> int:
    """Create the smallest of maps and return its descriptor; raises OSError if BPF is refused."""
    return _bpf(Command.MAP_CREATE, struct.pack("=IIIII", MapType.ARRAY, 4, 4, 1, 0))


def _element(fd: int, key: int, value: int, flags: int = 0) -> bytes:
    # union bpf_attr, the element commands: map_fd, padding, key, value, flags.
    return struct.pack("=IIQQQ", fd, 0, key, value, flags)


def map_lookup(fd: int, key: bytes, value_size: int) -> bytes | None:
    """Return the value stored under *key*, or None; raises OSError."""
    value = ctypes.create_string_buffer(value_size)
    held = ctypes.create_string_buffer(key, len(key))
    try:
        _bpf(
            Command.MAP_LOOKUP_ELEM,
            _element(fd, ctypes.addressof(held), ctypes.addressof(value)),
        )
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return value.raw


def map_update(fd: int, key: bytes, value: bytes, *, must_exist: bool = False) -> None:
    """Store *value* under *key*; raises OSError (E2BIG where the map is full).

    *must_exist*: ENOENT where there is no such entry yet.
    """
    held_key = ctypes.create_string_buffer(key, len(key))
    held_value = ctypes.create_string_buffer(value, len(value))
    _bpf(
        Command.MAP_UPDATE_ELEM,
        _element(
            fd,
            ctypes.addressof(held_key),
            ctypes.addressof(held_value),
            _BPF_EXIST if must_exist else 0,
        ),
    )


def map_delete(fd: int, key: bytes) -> bool:
    """Remove *key*; return whether it was there; raises OSError."""
    held = ctypes.create_string_buffer(key, len(key))
    try:
        _bpf(Command.MAP_DELETE_ELEM, _element(fd, ctypes.addressof(held), 0))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise
    return True


def map_next_key(fd: int, key: bytes | None, key_size: int) -> bytes | None:
    """Return the key after *key* (None: the first), or None at the end; raises OSError."""
    following = ctypes.create_string_buffer(key_size)
    held = ctypes.create_string_buffer(key, key_size) if key is not None else None
    address = ctypes.addressof(held) if held is not None else 0
    try:
        _bpf(Command.MAP_GET_NEXT_KEY, _element(fd, address, ctypes.addressof(following)))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return following.raw


def map_lookup_batch(
    fd: int, key_size: int, value_size: int, cursor: bytes | None, count: int
) -> tuple[bytes, bytes, bytes | None]:
    """Return up to *count* keys and values, packed, and the cursor to continue at (None: the end).

    Needs Linux 5.6. Raises OSError: EINVAL on an older kernel, ENOSPC where *count* is smaller
    than what one hash bucket holds.
    """
    keys = ctypes.create_string_buffer(key_size * count)
    values = ctypes.create_string_buffer(value_size * count)
    entry = ctypes.create_string_buffer(cursor or b"", max(key_size, 8))
    out = ctypes.create_string_buffer(max(key_size, 8))
    attributes = struct.pack(
        "=QQQQIIQQ",
        ctypes.addressof(entry) if cursor is not None else 0,
        ctypes.addressof(out),
        ctypes.addressof(keys),
        ctypes.addressof(values),
        count,
        fd,
        0,
        0,
    )
    held = ctypes.create_string_buffer(attributes, len(attributes))
    result = attempt("bpf", Command.MAP_LOOKUP_BATCH, held, len(attributes))
    at_end = result == -errno.ENOENT
    if result < 0 and not at_end:
        raise OSError(-result, f"bpf: {os.strerror(-result)}")
    found = struct.unpack_from("=I", held.raw, 32)[0]
    following = None if at_end else out.raw
    # Not `raw`: it copies what was not filled, too.
    return (
        ctypes.string_at(keys, found * key_size),
        ctypes.string_at(values, found * value_size),
        following,
    )


def open_raw_tracepoint(name: str, program_fd: int) -> int:
    """Attach *program_fd* to raw tracepoint *name*; return the link's descriptor; raises OSError.

    Unlike an ordinary tracepoint this needs no tracefs.
    """
    held = ctypes.create_string_buffer(name.encode())
    return _bpf(
        Command.RAW_TRACEPOINT_OPEN, struct.pack("=QII", ctypes.addressof(held), program_fd, 0)
    )


def create_map(definition: MapDefinition, inner_fd: int = 0) -> int:
    """Create a map and return its descriptor; raises OSError.

    *inner_fd*: of a map of maps, one that is like those in it.
    """
    # union bpf_attr, map creation: map_type, key_size, value_size, max_entries, map_flags,
    # inner_map_fd, numa_node, map_name.
    attributes = struct.pack(
        "=IIIIIII16s",
        definition.type,
        definition.key_size,
        definition.value_size,
        definition.max_entries,
        definition.flags,
        inner_fd,
        0,
        _object_name(definition.name),
    )
    return _bpf(Command.MAP_CREATE, attributes)


def freeze_map(fd: int) -> None:
    """Let nobody but BPF programs change the map from now on, not even root; raises OSError."""
    _bpf(Command.MAP_FREEZE, struct.pack("=I", fd))


def load_program(name: str, kind: int, attach_type: int, instructions: bytes, licence: str) -> int:
    """Load a program of type *kind* and return its descriptor; raises OSError."""
    held_instructions = ctypes.create_string_buffer(instructions, len(instructions))
    held_licence = ctypes.create_string_buffer(licence.encode())
    # union bpf_attr, program loading: prog_type, insn_cnt, insns, license, log_level, log_size,
    # log_buf, kern_version, prog_flags, prog_name, prog_ifindex, expected_attach_type.
    attributes = struct.pack(
        "=IIQQIIQII16sII",
        kind,
        len(instructions) // _INSTRUCTION_SIZE,
        ctypes.addressof(held_instructions),
        ctypes.addressof(held_licence),
        0,
        0,
        0,
        0,
        0,
        _object_name(name),
        0,
        attach_type,
    )
    return _bpf(Command.PROG_LOAD, attributes)


def _object_name(name: str) -> bytes:
    return name.encode()[:_OBJECT_NAME_SIZE]
