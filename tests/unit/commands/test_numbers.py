"""Arguments that are numbers, and times with their units."""

import argparse

import pytest

from gilscope.commands.numbers import seconds_between

_read = seconds_between(0.001, 1e9)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 10.0),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("10s", 10.0),
        ("500ms", 0.5),
        ("2m", 120.0),
        ("1.5h", 5400.0),
        ("1h30m", 5400.0),
        ("1m30s", 90.0),
    ],
)
def test_times_are_seconds_or_have_units(text: str, seconds: float) -> None:
    """
    Several units are added up.
    """
    assert seconds == _read(text)


@pytest.mark.parametrize(
    "text", ["", "s", "10x", "10 s", "-1s", "1s2", "0", "0s", "nan", "inf", "1e10", "٣s", "1s" * 99]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """
    The message shows times as they can be written.
    """
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time such as 10s, 2m or 1h"):
        _read(text)
