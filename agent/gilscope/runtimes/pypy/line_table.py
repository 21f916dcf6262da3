"""Finds the source line of an instruction in PyPy's own form of `co_linetable`, since Python 3.11.

There is an entry for each instruction of two bytes: the line, counted from the code's first one,
plus one; the first and the last column; and how many lines further it ends. A single 0 stands for
an instruction that belongs to no line. Numbers are of seven bits a byte, the lowest first.
"""

__all__ = ["line_at"]

_UNIT = 2
_MORE, _BITS, _CHUNK = 0x80, 7, 0x7F
_MOST_BITS = 64
"""Of a number; PyPy's have half of them, and a longer one costs ever more to be read."""
_BEHIND_LINE = 3
"""Numbers of an entry that follow its line."""


def line_at(table: bytes, first_line: int, instruction: int) -> int | None:
    """Return the source line of the *instruction*, in bytes from the first one.

    None for one that belongs to no line or lies behind the end of *table*. Raises ValueError where
    that is not whole.
    """
    if instruction < 0:
        return None
    at = 0
    for _ in range(instruction // _UNIT + 1):
        if at >= len(table):
            return None
        line, at = _number(table, at)
        for _ in range(_BEHIND_LINE if line else 0):
            _, at = _number(table, at)
    return first_line + line - 1 if line else None


def _number(table: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place of *table*, and where the next one is."""
    value, shift = 0, 0
    while True:
        if at >= len(table):
            raise ValueError("a line table ends within a number")
        value |= (table[at] & _CHUNK) << shift
        at += 1
        if not table[at - 1] & _MORE:
            return value, at
        shift += _BITS
        if shift > _MOST_BITS:
            raise ValueError("a number of a line table has no end")
