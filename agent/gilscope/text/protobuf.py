"""Protocol Buffers as bytes, as far as they are written here: numbers, lists of them, messages.

What is zero or empty is left out, which is how the format says it.
"""

import struct
from collections.abc import Iterable

__all__ = ["delimited", "element", "fraction", "message", "number", "numbers", "signed"]

_VARINT, _FIXED_64, _LENGTH_DELIMITED = 0, 1, 2
_DOUBLE = struct.Struct("<d")
_MORE = 0x80
_BITS = 7
_MASK_64 = (1 << 64) - 1
_TYPE_BITS = 3


def number(field: int, value: int) -> bytes:
    """Return *value*, of 64 bits with or without a sign, as that *field*."""
    return _varint(field << _TYPE_BITS | _VARINT) + _varint(value) if value else b""


def signed(value: int) -> int:
    """Return *value* as types of the name sint have it: small ones of both signs are small."""
    return value << 1 if value >= 0 else ~(value << 1)


def fraction(field: int, value: float) -> bytes:
    """Return *value* as that *field*, of 64 bits with a point."""
    return _varint(field << _TYPE_BITS | _FIXED_64) + _DOUBLE.pack(value) if value else b""


def delimited(content: bytes) -> bytes:
    """Return a message in a stream of them: its size first."""
    return _varint(len(content)) + content


def numbers(field: int, values: Iterable[int]) -> bytes:
    """Return *values* as that repeated *field*, packed; zeros among them stay."""
    return message(field, b"".join(map(_varint, values)))


def message(field: int, content: bytes) -> bytes:
    """Return *content*, which is a message, or text in UTF-8, as that *field*."""
    return element(field, content) if content else b""


def element(field: int, content: bytes) -> bytes:
    """Return *content* as one of that repeated *field*: there even if it is empty."""
    return _varint(field << _TYPE_BITS | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    left = value & _MASK_64
    encoded = bytearray()
    while left >= _MORE:
        encoded.append(left & (_MORE - 1) | _MORE)
        left >>= _BITS
    encoded.append(left)
    return bytes(encoded)
