"""The gate before a number: which machines it lets pass, and which CPUs a set has."""

import pytest
from bench.experiments.gate import cpu_sets, pinned, verdict, verdict_on_stolen


@pytest.mark.parametrize(
    ("shares", "pressure", "expected"),
    [
        ({0: 1.0, 1: 0.9}, 0.049, None),
        ({0: 1.0, 1: 0.89}, 0.0, "a spin got 89 % of CPU 1"),
        ({0: 1.0}, 0.05, "tasks waited for a CPU in 5 % of the time"),
    ],
)
def test_a_busy_machine_gives_no_number(
    shares: dict[int, float], pressure: float, expected: str | None
) -> None:
    """
    Each of the two limits shuts the gate by itself.
    """
    assert expected == verdict(shares, pressure)


def test_stolen_time_is_judged_over_the_whole_cell() -> None:
    """
    In a gate of two CPUs, 0.4 s, each tick of 10 ms would be 1.25 %.
    """
    assert verdict_on_stolen(0.049) is None
    assert "the hypervisor took 5.0 % of the time away" == verdict_on_stolen(0.05)


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
