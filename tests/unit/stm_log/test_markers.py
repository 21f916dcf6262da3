"""Positions as logs write them."""

import pytest

from gilscope.stm_log.markers import Position, describe, position_of, without_offset


@pytest.mark.parametrize(
    ("marker", "position"),
    [
        (
            'File "app.py", line 51, in stamp (#23)',
            Position("app.py", 51, "stamp", 23),
        ),
        ('File "/srv/a b.py", line 0, in <module>', Position("/srv/a b.py", 0, "<module>", None)),
        ('File "<ornado/web.py", line 9, in f>', Position("<ornado/web.py", 9, "f>", None)),
        ('File "a"b.py", line 9, in ? (#0)', Position('a"b.py', 9, "?", 0)),
    ],
)
def test_positions_are_understood(marker: str, position: Position) -> None:
    """
    File, line and function, of all years, cut or not.
    """
    assert position == position_of(marker)


@pytest.mark.parametrize("marker", ["", "app.py", 'File "app.py"', "9\0\0\0\0\0\0\0", "s0n514"])
def test_other_markers_are_no_positions(marker: str) -> None:
    """
    A marker may be anything.
    """
    assert position_of(marker) is None


def test_offsets_are_left_out() -> None:
    """
    The same line has several of them.
    """
    markers = ('File "a.py", line 3, in f (#379)', 'File "a.py", line 3, in f', "(#3)")

    assert (*['File "a.py", line 3, in f'] * 2, "(#3)") == without_offset(markers)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("", "(no position: not in a Python function)"),
        (
            "9\0\0\0\0\0\0\0",
            "(position number 57: the program does not say what it stands for)",
        ),
        (
            "\\xff\\x01\0\0\0\0\0\0",
            "(position number 511: the program does not say what it stands for)",
        ),
        ("8 letter", "8 letter"),
        ('File "a.py", line 3, in f', 'File "a.py", line 3, in f'),
    ],
)
def test_what_is_no_position_is_put_into_words(marker: str, words: str) -> None:
    """
    The costliest place of a report may have none, and it is said why.
    """
    assert words == describe(marker)
