"""Reads the table of all types that every PyPy carries, stripped or not.

What ``gc.get_typeids_z()`` returns lies in the data as one zlib stream: a line for each type, with
its fields in the order of memory. What ``gc.get_typeids_list()`` returns lies there too: the number
with which the objects of each type begin. So the layout of any build is read from its file.
"""

import re
import struct
import zlib
from collections.abc import Mapping
from typing import Final

from gilscope.errors import GilCodeNotFound
from gilscope.values import dataclass

__all__ = ["TypeTable", "read_type_table"]

_STREAM: Final = b"\x78\xda"
_BEGIN: Final = b"member0"
_FIRST_BYTES: Final = 512
_MOST_BYTES: Final = 4 << 20
_MOST_STREAMS: Final = 20_000
_MEMBER: Final = re.compile(rb"^member(\d+)\s+GcStruct (\S+) \{ (.*) \}", re.MULTILINE)
_MEMBERS: Final = re.compile(rb"^member", re.MULTILINE)
_HEADER: Final = 8
"""Bytes with which each object begins, the number of its type in the lower half."""
_WORD: Final = 8
_TAKES_NO_ROOM: Final = frozenset({"super", "inst_space"})
"""What it inherits comes first; the object space is one constant."""


@dataclass(frozen=True, slots=True)
class TypeTable:
    """The structures of one build."""

    fields: Mapping[str, tuple[str, ...]]
    """Of each structure, without those that it inherits."""
    ids: Mapping[str, int]

    def offset(self, name: str, field: str, base: str = "") -> int:
        """Return where *field* is in the structure *name*, which inherits from *base*, bytes.

        Raises GilCodeNotFound where there is none.
        """
        begin = _HEADER + (_WORD * len(self.fields.get(base, ())) if base else 0)
        try:
            return begin + _WORD * self.fields[name].index(field)
        except (KeyError, ValueError) as error:
            raise GilCodeNotFound(f"this PyPy has no {field} in {name}") from error


def read_type_table(data: bytes) -> TypeTable:
    """Return the types that *data*, the section of that name, describes.

    Raises GilCodeNotFound where there is not one table of them, or no list of their numbers.
    """
    text = _text(data)
    count = len(_MEMBERS.findall(text)) - 1
    # Its length, and the first two numbers.
    begins = struct.pack("<QII", count, 0, 8)
    at = data.find(begins)
    if at < 0 or data.find(begins, at + 1) >= 0 or at + _WORD + 4 * count > len(data):
        raise GilCodeNotFound("this PyPy has no list of the numbers of its types")
    numbers = struct.unpack_from(f"<{count}I", data, at + _WORD)
    fields: dict[str, tuple[str, ...]] = {}
    ids: dict[str, int] = {}
    for member, name, listed in _MEMBER.findall(text):
        decoded = name.decode("ascii", "replace")
        if int(member) < count and decoded not in fields:
            names = (each.strip().decode("ascii", "replace") for each in listed.split(b","))
            fields[decoded] = tuple(each for each in names if each not in _TAKES_NO_ROOM)
            ids[decoded] = numbers[int(member)]
    return TypeTable(fields, ids)


def _text(data: bytes) -> bytes:
    at = data.find(_STREAM)
    for _ in range(_MOST_STREAMS):
        if at < 0:
            break
        begin = _inflated(data[at : at + _FIRST_BYTES], len(_BEGIN))
        if begin == _BEGIN:
            return _inflated(data[at : at + _MOST_BYTES], _MOST_BYTES)
        at = data.find(_STREAM, at + 1)
    raise GilCodeNotFound("this PyPy has no table of its types")


def _inflated(stream: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream, most)
    except zlib.error:
        return b""
