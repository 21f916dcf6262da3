"""Faults that befall the agent: how it is called, asked and ended."""

import pytest

from faults.half import assert_harmless, each_fault
from faults.registry import Fault

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@each_fault("agent")
def test_fault_does_no_harm(fault: Fault) -> None:
    """
    Nothing is left of it, and its target has not noticed.
    """
    assert_harmless(fault)
