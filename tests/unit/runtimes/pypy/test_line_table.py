"""The lines of instructions, in PyPy's own form."""

import pytest

from gilscope.runtimes.pypy.line_table import line_at

# From PyPy 7.3.19, of a function that begins in line 2: `print('x'); sys.stdout.flush()` in line 3,
# the next statement in line 4; then an instruction without a line, and one far down.
_TABLE = bytes.fromhex("02050a00 020b0e00 03050900 00 84070509 00")


@pytest.mark.parametrize(
    ("instruction", "line"), [(0, 3), (2, 3), (3, 3), (4, 4), (6, None), (8, 901), (10, None)]
)
def test_each_instruction_has_its_line(instruction: int, line: int | None) -> None:
    """
    Two bytes each; some belong to none.
    """
    assert line == line_at(_TABLE, 2, instruction)


def test_a_frame_that_has_not_begun_has_no_line() -> None:
    """
    It stands before the first instruction.
    """
    assert line_at(_TABLE, 2, -1) is None


@pytest.mark.parametrize(
    ("table", "words"),
    [(b"\x84", "within a number"), (b"\xff" * 99 + b"\1", "has no end")],
)
def test_a_table_that_is_not_whole_is_refused(table: bytes, words: str) -> None:
    """
    A number goes on behind the end, or for longer than any line needs.
    """
    with pytest.raises(ValueError, match=words):
        line_at(table, 2, 0)
