"""The gate before a number: which machines it lets pass, and which CPUs a set has."""

import pytest
from bench.experiments.gate import cpu_sets, pinned, verdict


@pytest.mark.parametrize(
    ("shares", "pressure", "stolen", "expected"),
    [
        ({0: 1.0, 1: 0.97}, 0.049, 0.009, None),
        ({0: 1.0, 1: 0.96}, 0.0, 0.0, "a spin got 96 % of CPU 1"),
        ({0: 1.0}, 0.05, 0.0, "tasks waited for a CPU in 5 % of the time"),
        ({0: 1.0}, 0.0, 0.01, "the hypervisor took 1.0 % of the time away"),
    ],
)
def test_a_busy_machine_gives_no_number(
    shares: dict[int, float], pressure: float, stolen: float, expected: str | None
) -> None:
    """
    Each of the three limits shuts the gate by itself.
    """
    assert expected == verdict(shares, pressure, stolen)


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        ({3}, {"one": (3,)}),
        ({0, 1}, {"one": (0,), "two": (0, 1)}),
        ({4, 0, 2}, {"one": (0,), "two": (0, 2), "all": (0, 2, 4)}),
    ],
)
def test_sets_are_of_the_usable_cpus(cpus: set[int], expected: dict[str, tuple[int, ...]]) -> None:
    """
    Two sets are never the same.
    """
    assert expected == cpu_sets(cpus)


def test_a_command_is_pinned() -> None:
    """
    To these CPUs and no other.
    """
    assert ["taskset", "--cpu-list", "0,2", "true"] == pinned(["true"], (0, 2))
