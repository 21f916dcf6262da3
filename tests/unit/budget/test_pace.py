"""How often windows open in many processes."""

import pytest

from gilscope.budget.pace import Pace

_S = 1_000_000_000


@pytest.mark.parametrize(
    ("processes", "pause_s"), [(0, 4), (1, 4), (6, 4), (7, 4.2), (10, 6), (14, 8), (1000, 8)]
)
def test_the_more_there_are_the_longer_each_waits(processes: int, pause_s: float) -> None:
    """
    Five windows in three seconds, of all together, as long as no bucket forgets what it has got.
    """
    pace = Pace()
    pace.processes = processes

    assert pause_s * _S == pace.pause_ns
