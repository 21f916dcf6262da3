"""Where the dynamic loader writes into a file that it has loaded."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from gilscope.elf.image import ElfError, ElfImage

__all__ = ["Relocation", "relocations"]

_SHT_RELA: Final = 4
_RELA: Final = struct.Struct("<QIIq")


class Relocation(NamedTuple):
    """One entry of a table."""

    slot: int
    """The address that is written to."""
    kind: int
    """Of its processor, ``R_*``."""
    symbol: int
    """Index in .dynsym; 0: it is about none."""
    addend: int


def relocations(image: ElfImage) -> Iterator[Relocation]:
    """Yield all of an image; raises ElfError."""
    for section in image.sections:
        if section.kind != _SHT_RELA or not section.size:
            continue
        table = image.section_bytes(section)
        if len(table) % _RELA.size:
            raise ElfError(f"{section.name} of {len(table)} bytes")
        image.budget.spend(len(table) // _RELA.size)
        yield from map(Relocation._make, _RELA.iter_unpack(table))
