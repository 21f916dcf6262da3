"""The table of types that a PyPy carries."""

import struct
import zlib

import pytest

from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.sites.type_table import read_type_table

_TEXT = (
    b"member0    ?\n"
    b"member1    GcStruct Base { header, inst_name, inst_size }\n"
    b"member2    GcStruct Derived { super, inst_space, inst_file, inst_line }\n"
    b"member3    GcArray of * GcStruct Base\n"
    b"member4    GcStruct Last { super }\n"
)
_NUMBERS = (0, 8, 16, 24)


def _data(text: bytes = _TEXT, numbers: tuple[int, ...] = _NUMBERS, *, lists: int = 1) -> bytes:
    listed = struct.pack(f"<Q{len(numbers)}I", len(numbers), *numbers)
    # A stream of something else before it.
    return b"\x78\xda none" + zlib.compress(b"other", 9) + zlib.compress(text, 9) + listed * lists


def test_fields_and_numbers_are_read() -> None:
    """
    A structure has its own fields, without what takes no room, and the number of its objects.
    """
    types = read_type_table(_data())

    assert ("inst_file", "inst_line") == types.fields["Derived"]
    assert {"Base": 8, "Derived": 16} == dict(types.ids)


def test_offsets_begin_behind_what_is_inherited() -> None:
    """
    A header of 8 bytes, the fields of the base, then the own ones.
    """
    types = read_type_table(_data())

    assert 8 + 8 == types.offset("Base", "inst_name")
    assert 8 + 8 == types.offset("Derived", "inst_line")
    assert 8 + 3 * 8 + 8 == types.offset("Derived", "inst_line", "Base")


@pytest.mark.parametrize(("name", "field"), [("Derived", "inst_none"), ("None", "inst_file")])
def test_a_field_that_is_not_there_is_refused(name: str, field: str) -> None:
    """
    Nothing is guessed.
    """
    with pytest.raises(GilCodeNotFound, match=f"no {field} in {name}"):
        read_type_table(_data()).offset(name, field)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no table of its types"),
        (_data(b"something else"), "no table of its types"),
        (_data(lists=0), "no list of the numbers"),
        (_data(lists=2), "no list of the numbers"),
        (_data(numbers=_NUMBERS[:-1]), "no list of the numbers"),
    ],
)
def test_what_is_not_one_table_is_refused(data: bytes, words: str) -> None:
    """
    There has to be one, with one list of numbers of its length.
    """
    with pytest.raises(GilCodeNotFound, match=words):
        read_type_table(data)
