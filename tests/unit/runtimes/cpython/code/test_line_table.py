"""Decodes line tables that were written by hand, whole ones and damaged ones."""

import pytest

from gilscope.runtimes.cpython.code.line_table import LineTableForm, line_at

_UNSIGNED, _INCREMENTS, _RANGES, _LOCATIONS = LineTableForm


def _lines(form: LineTableForm, table: bytes, instructions: int) -> list[int | None]:
    return [line_at(form, table, 100, 2 * number) for number in range(instructions)]


def _entry(kind: int, units: int, *content: int) -> bytes:
    return bytes([0x80 | kind << 3 | units - 1, *content])


def test_increments() -> None:
    """
    Up to 3.9 each pair says how far the line so far reaches and how many lines come then.
    """
    table = bytes([4, 2, 2, 256 - 3, 4, 1])

    assert [100, 100, 102, 99, 99, 100, 100] == _lines(_INCREMENTS, table, 7)


def test_increments_larger_than_a_byte() -> None:
    """
    A step that does not fit one pair is spread over several, whose parts stand on no line.
    """
    table = bytes([0, 127, 0, 127, 254, 0, 2, 256 - 128, 0, 256 - 100])

    assert 100 + 254 == line_at(_INCREMENTS, table, 100, 255)
    assert 100 + 254 - 228 == line_at(_INCREMENTS, table, 100, 256)


def test_increments_that_say_nothing() -> None:
    """
    A function of one line has an empty table.
    """
    assert [100, 100] == _lines(_INCREMENTS, b"", 2)


def test_ranges() -> None:
    """
    In 3.10 each pair says how far the line of its step reaches; one step means no line.
    """
    table = bytes([4, 0, 2, 2, 2, 128, 4, 256 - 1])

    assert [100, 100, 102, None, 101, 101, None] == _lines(_RANGES, table, 7)


def test_ranges_larger_than_a_byte() -> None:
    """
    Pairs without length only step, and a long line takes several pairs.
    """
    table = bytes([0, 127, 254, 10, 254, 0])

    assert 237 == line_at(_RANGES, table, 100, 0)
    assert 237 == line_at(_RANGES, table, 100, 506)
    assert None is line_at(_RANGES, table, 100, 508)


def test_locations() -> None:
    """
    From 3.11 on every kind of entry steps as it should, whatever it says of columns.
    """
    table = b"".join(
        [
            _entry(0, 1, 0x12),  # short: columns only
            _entry(9, 2, 0x7F),
            _entry(10, 1, 4, 8),  # the same line, with columns
            _entry(11, 1, 4, 8),  # the next line
            _entry(12, 1, 4, 8),  # the one after the next
            _entry(13, 1, 0b000101),  # two lines back, no columns
            _entry(15, 1),  # no line
            _entry(14, 1, 0b001000, 1, 5, 9),  # four lines on, in the long form
            _entry(0, 8, 0x12),
        ]
    )

    assert [100, 100, 100, 100, 101, 103, 101, None] == _lines(_LOCATIONS, table, 8)
    assert [105] * 9 == _lines(_LOCATIONS, table, 17)[8:]
    assert None is line_at(_LOCATIONS, table, 100, 34)


@pytest.mark.parametrize("step", [1 << 20, -(1 << 20), 31, 32, -31, -32])
def test_locations_with_long_steps(step: int) -> None:
    """
    A step of any size is read from as many bytes as it takes.
    """
    value = -step << 1 | 1 if step < 0 else step << 1
    content = []
    while value > 63:
        content.append(value & 63 | 64)
        value >>= 6

    assert 100 + step == line_at(_LOCATIONS, _entry(13, 1, *content, value), 100, 0)


def test_lines_of_old_tables_never_go_back() -> None:
    """
    A step of 200 lines is one of 200 lines up to CPython 3.5, and one back later.
    """
    table = bytes((3, 200, 6, 1))

    assert [10, 210, 211] == [line_at(_UNSIGNED, table, 10, at) for at in (0, 3, 9)]
    assert [10, -46, -45] == [line_at(_INCREMENTS, table, 10, at) for at in (0, 3, 9)]


@pytest.mark.parametrize("form", LineTableForm)
def test_frame_that_has_not_begun(form: LineTableForm) -> None:
    """
    Before the first instruction there is no line.
    """
    assert None is line_at(form, b"", 100, -1)
    assert None is line_at(form, b"", 100, -2)


@pytest.mark.parametrize(
    ("form", "table", "words"),
    [
        (_UNSIGNED, bytes(3), "a line table of 3 bytes"),
        (_INCREMENTS, bytes(3), "a line table of 3 bytes"),
        (_RANGES, bytes(5), "a line table of 5 bytes"),
        (_LOCATIONS, b"\x08\x80", "begins at its byte 0"),
        (_LOCATIONS, _entry(13, 1), "ends early, at its byte 1"),
        (_LOCATIONS, _entry(13, 1, 0x41), "ends early, at its byte 2"),
        (_LOCATIONS, _entry(13, 1, 0x41) + _entry(0, 1, 0), "ends early, at its byte 2"),
        (_LOCATIONS, _entry(13, 1, *[0x7F] * 99, 1), "has no end at its byte 12"),
    ],
)
def test_damaged_table(form: LineTableForm, table: bytes, words: str) -> None:
    """
    A table that cannot be whole is refused instead of half believed.
    """
    with pytest.raises(ValueError, match=words):
        line_at(form, table, 100, 0)
