"""Plays the faults that every run of the tests plays; `make test-faults` plays all of them."""

from collections.abc import Callable
from typing import Final

import pytest

from faults.one_fault import play
from faults.registry import Fault, all_faults

__all__ = ["SUBJECTS_OF", "assert_harmless", "each_fault"]

SUBJECTS_OF: Final = {
    "agent": ("agents", "argv", "captures", "http", "kill", "numbers"),
    "machine": ("disk", "limits", "rights", "space", "stm", "streams", "top"),
    "target": ("file", "hostile", "life", "names", "python"),
}
"""Whom or what a fault befalls first. One file of tests plays each: files run side by side."""


def each_fault(kind: str) -> Callable[[Callable[[Fault], None]], Callable[[Fault], None]]:
    """Return what gives a test the faults of *kind* one by one."""
    faults = [
        fault
        for fault in all_faults().values()
        if fault.subject in SUBJECTS_OF[kind] and fault.in_half and not fault.opt_in
    ]
    return pytest.mark.parametrize("fault", faults, ids=lambda fault: fault.name)


def assert_harmless(fault: Fault) -> None:
    """Play *fault*; what it does, and what is expected, is said where it is defined."""
    result = play(fault, is_half=True)
    if result.not_here:
        pytest.skip(result.not_here)

    assert "" == result.verdict, f"{fault.what}\n{result.seen}"
