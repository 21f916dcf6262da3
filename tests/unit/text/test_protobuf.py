"""The bytes of Protocol Buffers, by the examples of its documentation."""

import pytest

from gilscope.text.protobuf import element, message, number, numbers
from support.reports.pprof import fields, packed


def test_numbers_and_texts_are_as_documented() -> None:
    """
    A field of 150, a text, and a packed list.
    """
    assert bytes.fromhex("089601") == number(1, 150)
    assert bytes.fromhex("120774657374696e67") == message(2, b"testing")
    assert bytes.fromhex("3206038e029ea705") == numbers(6, [3, 270, 86942])


@pytest.mark.parametrize("value", [1, 127, 128, 2**32, 2**63 - 1, 2**64 - 1])
def test_numbers_come_back(value: int) -> None:
    """
    Of any size; fields of two bytes, too.
    """
    assert [(3, value), (1000, value)] == [*fields(number(3, value) + number(1000, value))]
    assert [value, 0, value] == [*packed(next(content for _, content in _lists(value)))]


def _lists(value: int) -> list[tuple[int, bytes]]:
    found = fields(numbers(1, [value, 0, value]))
    return [(field, content) for field, content in found if isinstance(content, bytes)]


def test_what_is_below_zero_has_ten_bytes() -> None:
    """
    As two's complement of 64 bits.
    """
    assert [(1, 2**64 - 5)] == [*fields(number(1, -5))]
    assert 11 == len(number(1, -5))


def test_what_is_zero_or_empty_is_left_out() -> None:
    """
    Unless it is one of many, where its place counts.
    """
    assert b"" == number(1, 0) + message(2, b"") + numbers(3, [])
    assert bytes.fromhex("3200") == element(6, b"")
