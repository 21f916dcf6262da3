"""Memory that a test fills piece by piece, as a process would have it."""

import errno

__all__ = ["FilledMemory"]

_BASE = 0x7F00_0000_0000
_SIZE = 1 << 20


class FilledMemory:
    """Structures come one behind the other, zeroed; behind the last one nothing is mapped."""

    def __init__(self) -> None:
        self._content = bytearray(_SIZE)
        self._used = 0
        self.reads = 0

    def read(self, address: int, size: int) -> bytes:
        """Return what is there; raise OSError outside, as /proc/PID/mem does."""
        self.reads += 1
        start = address - _BASE
        if not 0 <= start <= self._used - size:
            raise OSError(errno.EIO, "not mapped")
        return bytes(self._content[start : start + size])

    def new(self, size: int) -> int:
        """Return the address of fresh memory."""
        start = self._used
        self._used += -(-size // 16) * 16
        assert self._used <= _SIZE
        return _BASE + start

    def put(self, address: int, content: bytes) -> None:
        """Write *content* at *address*."""
        start = address - _BASE
        self._content[start : start + len(content)] = content

    @property
    def used(self) -> int:
        """The first address behind all that there is."""
        return _BASE + self._used

    def holds(self, address: int, size: int) -> bool:
        """Return whether there are *size* bytes at *address*."""
        return _BASE <= address <= self.used - size

    def put_int(self, address: int, value: int, size: int = 8) -> None:
        """Write an integer of *size* bytes."""
        self.put(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))
