"""Finds the source line of an instruction in the table that a code object carries."""

from collections.abc import Iterator
from enum import Enum

__all__ = ["LineTableForm", "line_at"]

_UNIT = 2
"""Bytes of an instruction or of one of its inline caches."""

# Of the form INCREMENTS: Objects/lnotab_notes.txt of CPython 3.8. Of RANGES: the same file in 3.10.
_NO_LINE = -128

# Of the form LOCATIONS: Objects/locations.md (3.11), enum _PyCodeLocationInfoKind.
_FIRST_BYTE = 0x80
_ONE_LINE_0, _ONE_LINE_2, _NO_COLUMNS, _LONG, _NONE = 10, 12, 13, 14, 15
_MORE = 0x40
_CHUNK_BITS, _CHUNK = 6, 0x3F
_MOST_BITS = 64
"""Of a number; CPython's have half of them, and a longer one costs ever more to be read."""


class LineTableForm(Enum):
    """How the table is written; the values are names for people."""

    UNSIGNED_INCREMENTS = "unsigned increments"
    """Up to 3.5, `co_lnotab`: steps of bytecode and of lines, which are never back."""
    INCREMENTS = "increments"
    """3.6 to 3.9, `co_lnotab`: the same, and lines may go back."""
    RANGES = "ranges"
    """3.10, `co_linetable` (PEP 626): lengths of bytecode and steps of lines."""
    LOCATIONS = "locations"
    """From 3.11 on, `co_linetable` (PEP 657): entries with lines and columns."""


def line_at(form: LineTableForm, table: bytes, first_line: int, offset: int) -> int | None:
    """Return the source line of the instruction at *offset*, in bytes from the first one.

    None for an instruction that belongs to no line or lies behind the end of *table*, and for one
    before the first, which is where a frame stands that has not begun. Raises ValueError where the
    table cannot be a whole one.
    """
    if offset < 0:
        return None
    return next((line for end, line in _DECODERS[form](table, first_line) if offset < end), None)


def _unsigned_increments(table: bytes, line: int) -> Iterator[tuple[float, int | None]]:
    return _increments(table, line, is_signed=False)


def _increments(
    table: bytes, line: int, *, is_signed: bool = True
) -> Iterator[tuple[float, int | None]]:
    if len(table) % 2:
        raise ValueError(f"a line table of {len(table)} bytes")
    end = 0
    for bytecode, step in zip(table[::2], table[1::2], strict=True):
        if bytecode:
            end += bytecode
            yield end, line
        line += _signed(step) if is_signed else step
    # The last line reaches to the end of the code, wherever that is.
    yield float("inf"), line


def _ranges(table: bytes, line: int) -> Iterator[tuple[float, int | None]]:
    if len(table) % 2:
        raise ValueError(f"a line table of {len(table)} bytes")
    end = 0
    for length, byte in zip(table[::2], table[1::2], strict=True):
        step = _signed(byte)
        end += length
        if step == _NO_LINE:
            yield end, None
        else:
            line += step
            yield end, line


def _locations(table: bytes, line: int) -> Iterator[tuple[float, int | None]]:
    end, at = 0, 0
    while at < len(table):
        head = table[at]
        if not head & _FIRST_BYTE:
            raise ValueError(f"no entry of a line table begins at its byte {at}")
        kind = head >> 3 & 15
        end += ((head & 7) + 1) * _UNIT
        if kind in {_NO_COLUMNS, _LONG}:
            line += _signed_varint(table, at + 1)
        elif _ONE_LINE_0 <= kind <= _ONE_LINE_2:
            line += kind - _ONE_LINE_0
        yield end, None if kind == _NONE else line
        at = _next_entry(table, at + 1)


def _next_entry(table: bytes, at: int) -> int:
    # Only the first byte of an entry has the highest bit.
    while at < len(table) and not table[at] & _FIRST_BYTE:
        at += 1
    return at


def _signed_varint(table: bytes, at: int) -> int:
    value, shift = 0, 0
    while True:
        if at == len(table) or table[at] & _FIRST_BYTE:
            raise ValueError(f"a number of a line table ends early, at its byte {at}")
        value |= (table[at] & _CHUNK) << shift
        if not table[at] & _MORE:
            return -(value >> 1) if value & 1 else value >> 1
        at += 1
        shift += _CHUNK_BITS
        if shift > _MOST_BITS:
            raise ValueError(f"a number of a line table has no end at its byte {at}")


def _signed(byte: int) -> int:
    return byte - 256 if byte >= 128 else byte  # noqa: PLR2004 - two's complement


_DECODERS = {
    LineTableForm.UNSIGNED_INCREMENTS: _unsigned_increments,
    LineTableForm.INCREMENTS: _increments,
    LineTableForm.RANGES: _ranges,
    LineTableForm.LOCATIONS: _locations,
}
