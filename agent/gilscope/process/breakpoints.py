"""Where probes are in the memory of a process, and whether they are still there.

Code is in memory that its process may change: it can be dropped and mapped again from the file,
written over, or unmapped, and the breakpoint in it goes without anybody being told. Threads then
seem to wait for ever, and nobody seems to hold the lock. So each place is read again before what
was counted is believed.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Protocol

from gilscope.process.procfs import Mapping

__all__ = ["Memory", "addresses_of", "first_missing"]

_BREAKPOINT = b"\xcc"
"""int3, which the kernel writes over the first byte of an instruction."""


class Memory(Protocol):
    """The memory of a process."""

    def read(self, address: int, size: int) -> bytes:
        """Return *size* bytes at *address*; raises OSError."""


def addresses_of(
    file: Mapping, mappings: Iterable[Mapping], offsets: Iterable[int]
) -> Sequence[int]:
    """Return where *offsets* of the file of which *file* is one mapping can be executed."""
    code = [
        mapping
        for mapping in mappings
        if mapping.executable and (mapping.path, mapping.inode) == (file.path, file.inode)
    ]
    found = (
        mapping.start + offset - mapping.offset
        for offset in offsets
        for mapping in code
        if 0 <= offset - mapping.offset < mapping.end - mapping.start
    )
    # A thousand processes have some twenty each, and a number by itself takes four times as much.
    return array("Q", found)


def first_missing(memory: Memory, addresses: Iterable[int]) -> int | None:
    """Return the first of *addresses* that has no breakpoint, None if all have one.

    Raises OSError where the program that was attached does not run any more.
    """
    for address in addresses:
        if memory.read(address, 1) != _BREAKPOINT:
            return address
    return None
