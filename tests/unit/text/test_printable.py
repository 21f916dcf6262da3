"""What may go to a terminal."""

import pytest

from gilscope.text.printable import LONGEST_LABEL, label, printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("total += sum(range(20000))", "total += sum(range(20000))"),
        ("Pattern.scan <café> 数 🐍", "Pattern.scan <café> 数 🐍"),
        ("x\t= 1\r\n", "x = 1  "),
        ("\033[31mred\033[0m", "[31mred[0m"),
        ("\x9b31mred", "31mred"),
        ("a\x00b\x7fc\x08d", "abcd"),
        ("is_admin\u202e\u2066 # no", "is_admin # no"),
        ("half \udce9 pair", "half  pair"),
    ],
)
def test_only_what_is_seen_is_left(text: str, shown: str) -> None:
    """
    Text stays as it is, but for blanks, control characters and changes of direction.
    """
    assert shown == printable(text)


def test_lines_stay_lines() -> None:
    """
    Only the ends of lines are kept of what is not seen.
    """
    assert "one\ntwo three" == printable_lines("one\n\033two\rthree\u202e")


def test_label_is_short_and_keeps_both_ends() -> None:
    """
    Of a long name the middle goes: the function stands first, the file and the line last.
    """
    shown = label(f"{'f' * 4096} ({'d' * 4096}/app.py:17)")

    assert LONGEST_LABEL == len(shown)
    assert shown.startswith("ffff")
    assert shown.endswith("d/app.py:17)")
    assert "…" in shown


@pytest.mark.parametrize(
    "text", ["\033]0;PWN\a" * 1000, "\x00\r\n" * 5000, "\u202e\u2066\udc80" * 5000, "", "worker"]
)
def test_label_is_printable_and_stays_as_it_is(text: str) -> None:
    """
    Whatever it is made of; a label of a label is the same.
    """
    shown = label(text)

    assert shown.isprintable()
    assert len(shown) <= LONGEST_LABEL
    assert shown == label(shown)
