"""Faults of what is around: disks, limits, rights, streams and logs."""

import pytest

from faults.half import assert_harmless, each_fault
from faults.registry import Fault

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@each_fault("machine")
def test_fault_does_no_harm(fault: Fault) -> None:
    """
    What is refused is said, and what is lost is counted.
    """
    assert_harmless(fault)
