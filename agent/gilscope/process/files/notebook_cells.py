"""Finds in a notebook the text of a cell that a kernel has run, by the name that it has there.

The kernel names a cell ``ipykernel_PID/HASH.py``, by a hash of its text, and keeps no file of it. A
cell of a notebook with that hash has the text that was run, whatever has become of the others.
"""

import json
import re
import struct
from collections.abc import Collection, Iterator, Mapping

from gilscope.values import dataclass

__all__ = ["Cell", "cell_hash", "cells_in"]

_NAME = re.compile(r"(?:.*/)?ipykernel_\d+/(\d{1,10})\.py")

# Since ipykernel 6.0, whose `get_file_name` calls MurmurHash2 with this seed.
_SEED = 0xC70F6907
_FACTOR = 0x5BD1E995
_BITS = 0xFFFFFFFF

# What IPython rewrites before it compiles a cell; its lines may be others then.
_ESCAPES = ("%", "!", "?", "/", ",", ";", ">>>", "...", "In [")
_MAGIC_VALUE = re.compile(r"=\s*[%!]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook."""

    number: int
    """From 1, among those with code; 0 where several have the same text."""
    content: bytes
    """What was compiled."""


def cell_hash(file: str) -> int | None:
    """Return the hash of the cell that a kernel calls *file*, None where that is no cell."""
    name = _NAME.fullmatch(file)
    return None if name is None else int(name[1])


def cells_in(notebook: bytes, wanted: Collection[int]) -> dict[int, Cell]:
    """Return the cells of *notebook* that have a hash of *wanted*, by hash.

    Cells with magics are left out: what was compiled is not their text. Empty where *notebook* is
    not one.
    """
    found: dict[int, Cell] = {}
    for number, source in enumerate(_sources(notebook), start=1):
        content = source.encode("utf-8", "surrogatepass")
        key = _murmur2(content)
        if key in found:
            found[key] = Cell(0, content)
        elif key in wanted and _is_plain(source):
            found[key] = Cell(number, content)
    return found


def _sources(notebook: bytes) -> Iterator[str]:
    """Yield the texts of the cells with code."""
    try:
        cells = json.loads(notebook)["cells"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, Mapping) and cell.get("cell_type") == "code":
            yield _joined(cell.get("source"))


def _joined(source: object) -> str:
    # One text, or its lines.
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _is_plain(source: str) -> bool:
    lines = [line.strip() for line in source.split("\n")]
    return bool(lines[0]) and not any(
        line.startswith(_ESCAPES) or line.endswith("?") or _MAGIC_VALUE.search(line)
        for line in lines
    )


def _murmur2(content: bytes) -> int:
    """Return MurmurHash2 of *content*, for 32 bits."""
    whole = len(content) & ~3
    value = _SEED ^ len(content)
    for (word,) in struct.iter_unpack("<I", content[:whole]):
        mixed = word * _FACTOR & _BITS
        mixed = (mixed ^ mixed >> 24) * _FACTOR & _BITS
        value = value * _FACTOR & _BITS ^ mixed
    if content[whole:]:
        value = (value ^ int.from_bytes(content[whole:], "little")) * _FACTOR & _BITS
    value = (value ^ value >> 13) * _FACTOR & _BITS
    return value ^ value >> 15
