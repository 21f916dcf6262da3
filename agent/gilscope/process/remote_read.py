"""Reads single values from memory that may change while it is read."""

import errno
import struct
from collections.abc import Callable
from typing import Protocol, TypeVar

__all__ = [
    "LimitExceeded",
    "Memory",
    "TornRead",
    "read_bytes",
    "read_int",
    "read_pointer",
    "retried",
    "to_pointer",
]

_PAGE = 4096
_ATTEMPTS = 3

_T = TypeVar("_T")


class Memory(Protocol):
    """The memory of a process; `gilscope.process.memory.ProcessMemory` provides it."""

    def read(self, address: int, size: int) -> bytes:
        """Return exactly *size* bytes; raises OSError, with ESRCH once the process is gone."""


class TornRead(ValueError):
    """What was read cannot be true: the process was changing it. Another try may succeed."""


class LimitExceeded(TornRead):
    """There is more of something than any program has: to try again would only cost more."""


def read_bytes(memory: Memory, address: int, size: int) -> bytes:
    """Return *size* bytes; raises TornRead where nothing is mapped, OSError without a process."""
    try:
        return memory.read(address, size)
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise
        raise TornRead(f"no {size} bytes at {address:#x}") from error


def read_int(memory: Memory, address: int, size: int) -> int:
    """Return the signed integer of *size* bytes at *address*; raises like `read_bytes`."""
    return int.from_bytes(read_bytes(memory, address, size), "little", signed=True)


def read_pointer(memory: Memory, address: int) -> int:
    """Return the pointer at *address*, 0 for NULL; raises TornRead for what cannot be one."""
    return to_pointer(read_bytes(memory, address, 8), 0)


def to_pointer(content: bytes, offset: int) -> int:
    """Return the pointer at *offset* of *content*, 0 for NULL; raises TornRead as above."""
    value = int(struct.unpack_from("<Q", content, offset)[0])
    if value and (value < _PAGE or value % 8 or value >> 63):
        raise TornRead(f"{value:#x} is not the address of a Python structure")
    return value


def retried(read: Callable[[], _T]) -> _T:
    """Return what *read* returns, trying again a few times while it raises TornRead.

    Not where it raises LimitExceeded.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return read()
        except LimitExceeded:
            raise
        except TornRead:
            continue
    return read()
