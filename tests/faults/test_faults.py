"""The faults that every run of the tests plays; `make test-faults` plays all of them."""

import pytest

from faults.one_fault import play
from faults.registry import Fault, all_faults

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_HALF = [fault for fault in all_faults().values() if fault.in_half and not fault.opt_in]


@pytest.mark.parametrize("fault", _HALF, ids=lambda fault: fault.name)
def test_fault_does_no_harm(fault: Fault) -> None:
    """
    What it does, and what is expected, is said where it is defined.
    """
    result = play(fault, is_half=True)
    if result.not_here:
        pytest.skip(result.not_here)

    assert "" == result.verdict, f"{fault.what}\n{result.seen}"
