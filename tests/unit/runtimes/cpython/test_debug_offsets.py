"""Believes the table of CPython 3.13+ only as far as it can be true."""

import re

import pytest

from gilscope.errors import GilCodeNotFound, UnsupportedPython
from gilscope.runtimes.cpython.debug_offsets import COOKIE, WORDS_NEEDED, read_members
from support.gil.recorded_offsets import RECORDED_OFFSETS

_WORDS_3_13 = RECORDED_OFFSETS["3.13.5"]
_WORDS_3_15 = RECORDED_OFFSETS["3.15.2"]


def test_the_cookie_is_that_of_the_recorded_builds() -> None:
    """Every released table begins with the same eight bytes."""
    assert {COOKIE} == {words[0] for words in RECORDED_OFFSETS.values()}
    assert COOKIE.to_bytes(8, "little") == b"xdebugpy"


def test_enough_words_are_asked_for() -> None:
    """The last word that any version needs is among those that are read from the file."""
    read_members((3, 15), _WORDS_3_15[:WORDS_NEEDED])
    with pytest.raises(IndexError):
        read_members((3, 15), _WORDS_3_15[:92])


@pytest.mark.parametrize("minor", [(3, 12), (3, 16)])
def test_the_table_of_an_unknown_version_is_refused(minor: tuple[int, int]) -> None:
    """The order of the words is only known for versions that were looked at."""
    with pytest.raises(UnsupportedPython, match=re.escape(f"{minor[0]}.{minor[1]} are not known")):
        read_members(minor, _WORDS_3_15)


@pytest.mark.parametrize(
    ("position", "value", "found"),
    [
        (6, 0, "interpreter_id at 7272 of 0 bytes"),
        (6, 1 << 40, "interpreter_id at 7272"),
        (24, 304, "thread_id at 304 of 304 bytes"),
        (24, 153, "thread_id at 153"),
        (39, 66, "code_first_line at 66"),
        (25, 152, "native_thread_id at 152"),
        (17, 7772, "last_holder and locked at (8, 20)"),
        (18, 7776, "last_holder and locked at (24, 16)"),
    ],
    ids=[
        "empty structure",
        "huge structure",
        "member beyond its structure",
        "misaligned pointer",
        "misaligned int",
        "two members at one place",
        "locked elsewhere",
        "holder elsewhere",
    ],
)
def test_what_cannot_be_true_is_refused(position: int, value: int, found: str) -> None:
    """One wrong word is enough to refuse the table, with the word's meaning in the message."""
    words = list(_WORDS_3_13)
    words[position] = value
    with pytest.raises(GilCodeNotFound, match=re.escape(found)):
        read_members((3, 13), words)


def test_the_table_of_a_neighbour_is_refused() -> None:
    """Words of one version that are read as another's do not fit together."""
    with pytest.raises(GilCodeNotFound):
        read_members((3, 14), _WORDS_3_13)
    with pytest.raises(GilCodeNotFound):
        read_members((3, 15), RECORDED_OFFSETS["3.14.10"])
