"""One entry of a BPF map, read or written with as little work as that takes.

`bpf.syscalls` makes its buffers for each call and packs or unpacks the whole value. Here
everything is prepared before, so that a read or a change is one number and one system call.
"""

import ctypes
import errno
import os
import struct
import threading
from functools import lru_cache

from gilscope.bpf.commands import Command
from gilscope.system.syscall import attempt

__all__ = ["Change", "Entry"]

# union bpf_attr, the element commands: map_fd, padding, key, value, flags.
_ELEMENT = struct.Struct("=IIQQQ")


_VALUE_AT = 16
"""Where the address of the value is in it."""
_ADDRESS = struct.Struct("=Q")


class _Scratch(threading.local):
    """What the kernel writes a value into, of each thread its own.

    A value may have kilobytes, and there are thousands of entries of which one number is read.
    """

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(0)
        self._address = 0

    def of(self, size: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
        """Return what has room for *size* bytes, until the next one, and its address."""
        if len(self._buffer) < size:
            self._buffer = ctypes.create_string_buffer(size)
            self._address = ctypes.addressof(self._buffer)
        return self._buffer, self._address


_scratch = _Scratch()
_form = lru_cache(struct.Struct)


def _call(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    """Have the kernel carry *command* out; return 0 or the number of the error."""
    return -attempt("bpf", command, attributes, _ELEMENT.size)


class Entry:
    """One field of one entry. One thread at a time may read it, while the map is open."""

    # A thousand processes have six each.
    __slots__ = ("_attributes", "_form", "_offset", "_size")

    def __init__(self, fd: int, key: bytes, value_size: int, offset: int, code: str) -> None:
        """Read under *key* what lies at *offset* of the value, in the form of struct *code*."""
        # With the key behind them.
        self._attributes = ctypes.create_string_buffer(_ELEMENT.size + len(key))
        key_at = ctypes.addressof(self._attributes) + _ELEMENT.size
        self._attributes.raw = _ELEMENT.pack(fd, 0, key_at, 0, 0) + key
        self._size, self._offset = value_size, offset
        self._form = _form(f"={code}")

    def read(self) -> int | None:
        """Return the field of now, or None where there is no such entry; raises OSError."""
        buffer, address = _scratch.of(self._size)
        _ADDRESS.pack_into(self._attributes, _VALUE_AT, address)
        number = _call(Command.MAP_LOOKUP_ELEM, self._attributes)
        if number == errno.ENOENT:
            return None
        if number:
            raise OSError(number, f"bpf: {os.strerror(number)}")
        (field,) = self._form.unpack_from(buffer, self._offset)
        return int(field)


class Change:
    """A whole value that is ready to be stored but for one field."""

    def __init__(self, fd: int, key: bytes, value: bytes, offset: int, code: str) -> None:
        """Store *value* under *key*, with what is given later at *offset*, as struct *code*."""
        self._key = ctypes.create_string_buffer(key, len(key))
        self._value = ctypes.create_string_buffer(value, len(value))
        addresses = ctypes.addressof(self._key), ctypes.addressof(self._value)
        content = _ELEMENT.pack(fd, 0, *addresses, 0)
        self._attributes = ctypes.create_string_buffer(content, _ELEMENT.size)
        self._offset = offset
        self._form = _form(f"={code}")

    def make(self, number: int) -> None:
        """Store the value with *number* in the field; raises OSError, E2BIG where there is no room.

        While the map is open.
        """
        self._form.pack_into(self._value, self._offset, number)
        error = _call(Command.MAP_UPDATE_ELEM, self._attributes)
        if error:
            raise OSError(error, f"bpf: {os.strerror(error)}")
