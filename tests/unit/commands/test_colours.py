"""When reports are in colour."""

import argparse
import io

import pytest

from gilscope.commands.colours import add_color_option, is_coloured, wants_colour


@pytest.mark.parametrize(
    ("when", "environment", "is_terminal", "expected"),
    [
        ("auto", {"TERM": "xterm-256color"}, True, True),
        ("auto", {}, True, True),
        ("auto", {"TERM": "xterm-256color"}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_the_option_decides_then_the_environment_then_the_terminal(
    when: str, environment: dict[str, str], *, is_terminal: bool, expected: bool
) -> None:
    """
    NO_COLOR goes before FORCE_COLOR; empty ones count for nothing.
    """
    assert expected == is_coloured(when, environment, is_terminal=is_terminal)


def test_a_file_gets_none_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The option's default is auto.
    """
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    parser = argparse.ArgumentParser()
    add_color_option(parser)

    assert not wants_colour(parser.parse_args([]), io.StringIO())
    assert wants_colour(parser.parse_args(["--color", "always"]), io.StringIO())
