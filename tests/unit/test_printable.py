"""What may go to a terminal."""

import pytest

from gilscope.printable import printable


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
