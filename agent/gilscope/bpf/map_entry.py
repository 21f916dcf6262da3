"""One entry of a BPF map, read or written with as little work as that takes.

`bpf.syscalls` makes its buffers for each call and packs or unpacks the whole value. Here
everything is prepared before, so that a read or a change is one number and one system call.
"""

import ctypes
import errno
import os
import struct

from gilscope.bpf.commands import Command
from gilscope.system.syscall import attempt

__all__ = ["Change", "Entry"]

# union bpf_attr, the element commands: map_fd, padding, key, value, flags.
_ELEMENT = struct.Struct("=IIQQQ")


class _Element:
    """The arguments of the system call for one entry, and one field of its value."""

    def __init__(self, fd: int, key: bytes, value: bytes, offset: int, code: str) -> None:
        self._key = ctypes.create_string_buffer(key, len(key))
        self._value = ctypes.create_string_buffer(value, len(value))
        addresses = ctypes.addressof(self._key), ctypes.addressof(self._value)
        content = _ELEMENT.pack(fd, 0, *addresses, 0)
        self._attributes = ctypes.create_string_buffer(content, _ELEMENT.size)
        self.form = struct.Struct(f"={code}")
        self.field = memoryview(self._value)[offset : offset + self.form.size]

    def call(self, command: int) -> int:
        """Have the kernel carry *command* out; return 0 or the number of the error."""
        return -attempt("bpf", command, self._attributes, _ELEMENT.size)


class Entry:
    """One field of one entry. One thread at a time may read it, while the map is open."""

    def __init__(self, fd: int, key: bytes, value_size: int, offset: int, code: str) -> None:
        """Read under *key* what lies at *offset* of the value, in the form of struct *code*."""
        self._element = _Element(fd, key, bytes(value_size), offset, code)

    def read(self) -> int | None:
        """Return the field of now, or None where there is no such entry; raises OSError."""
        number = self._element.call(Command.MAP_LOOKUP_ELEM)
        if number == errno.ENOENT:
            return None
        if number:
            raise OSError(number, f"bpf: {os.strerror(number)}")
        (field,) = self._element.form.unpack(self._element.field)
        return int(field)


class Change:
    """A whole value that is ready to be stored but for one field."""

    def __init__(self, fd: int, key: bytes, value: bytes, offset: int, code: str) -> None:
        """Store *value* under *key*, with what is given later at *offset*, as struct *code*."""
        self._element = _Element(fd, key, value, offset, code)

    def make(self, number: int) -> None:
        """Store the value with *number* in the field; raises OSError, E2BIG where there is no room.

        While the map is open.
        """
        self._element.form.pack_into(self._element.field, 0, number)
        error = self._element.call(Command.MAP_UPDATE_ELEM)
        if error:
            raise OSError(error, f"bpf: {os.strerror(error)}")
