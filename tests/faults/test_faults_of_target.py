"""Faults that befall the target: its life, its files, and what it calls things."""

import pytest

from faults.half import assert_harmless, each_fault
from faults.registry import Fault

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@each_fault("target")
def test_fault_does_no_harm(fault: Fault) -> None:
    """
    It goes on as if nobody looked, and no number is wrong.
    """
    assert_harmless(fault)
