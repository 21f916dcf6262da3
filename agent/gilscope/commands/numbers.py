"""Types of arguments: numbers that have bounds."""

import argparse
import math
import re
from collections.abc import Callable

__all__ = ["pid_number", "seconds_between", "share", "whole_number"]

_MOST_DIGITS = 100
_PERCENT = 100
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION = re.compile(f"(?:{_PART.pattern})+")
_LONGEST = 100
"""Of a duration, in characters."""


def pid_number(text: str) -> int:
    """Return the number that *text* is; whether there can be such a process is seen later."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a process")
    return int(text)


def whole_number(most: int) -> Callable[[str], int]:
    """Return what reads a whole number from 0 to *most*."""

    def read(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not is_number or int(text) > most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {most}")
        return int(text)

    return read


def seconds_between(least: float, most: float) -> Callable[[str], float]:
    """Return what reads a time from *least* to *most* seconds: 10, 10s, 500ms, 2m, or 1h30m."""

    def read(text: str) -> float:
        seconds = _seconds(text)
        if not least <= seconds <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a time such as 10s, 2m or 1h, from {least:g} to {most:.12g} s"
            )
        return seconds

    return read


def _seconds(text: str) -> float:
    """Return how many seconds *text* says; no number if it says none."""
    if len(text) <= _LONGEST and _DURATION.fullmatch(text):
        return math.fsum(float(part[1]) * _UNITS_S[part[2]] for part in _PART.finditer(text))
    try:
        return float(text)
    except ValueError:
        return math.nan


def share(text: str) -> float:
    """Return the share that *text* is, as 1% or 0.01."""
    number = text.removesuffix("%")
    try:
        part = float(number) / (_PERCENT if text.endswith("%") else 1)
    except ValueError:
        part = -1.0
    if not 0 < part <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a budget such as 1% or 0.01")
    return part
