"""Reads one number out of a BPF map again and again, with as little work as that takes.

`kernel.syscalls` makes its buffers for each call and hands over the whole value, to be unpacked.
Here everything is prepared once, so that a look is one system call and one number.
"""

import ctypes
import errno
import os
import struct

__all__ = ["Entry"]

_SYS_BPF = 321
_BPF_MAP_LOOKUP_ELEM = 1
# union bpf_attr, the element commands: map_fd, padding, key, value, flags.
_ELEMENT = struct.Struct("=IIQQQ")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Entry:
    """One field of one entry. One thread at a time may read it, while the map is open."""

    def __init__(self, fd: int, key: bytes, value_size: int, offset: int, code: str) -> None:
        """Read under *key* what lies at *offset* of the value, in the form of struct *code*."""
        self._key = ctypes.create_string_buffer(key, len(key))
        self._value = ctypes.create_string_buffer(value_size)
        addresses = ctypes.addressof(self._key), ctypes.addressof(self._value)
        content = _ELEMENT.pack(fd, 0, *addresses, 0)
        self._attributes = ctypes.create_string_buffer(content, _ELEMENT.size)
        self._field = memoryview(self._value)[offset : offset + struct.calcsize(f"={code}")]
        self._form = struct.Struct(f"={code}")

    def read(self) -> int | None:
        """Return the field of now, or None where there is no such entry; raises OSError."""
        if _libc.syscall(_SYS_BPF, _BPF_MAP_LOOKUP_ELEM, self._attributes, _ELEMENT.size) < 0:
            number = ctypes.get_errno()
            if number == errno.ENOENT:
                return None
            raise OSError(number, f"bpf: {os.strerror(number)}")
        (field,) = self._form.unpack(self._field)
        return int(field)
