"""For how long a program reads that it held the GIL, in full mode, by its own clocks."""

from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.serve import serving
from support.interpreters.known import find_interpreter
from support.tracing.regions import with_client

pytestmark = [pytest.mark.live, pytest.mark.slow]

_TURNS, _SLEEP_NS = 10, 10_000_000
_TOLERANCE = 0.01


@pytest.mark.parametrize("name", ["pyenv-3.8-stripped", "debian-3.11", "debian-3.14"])
def test_region_holds_the_gil_whenever_it_runs(name: str, tmp_path: Path) -> None:
    """
    Of two that fight one holds it while the other waits; one that sleeps by turns, while it runs.
    """
    path = tmp_path / "regions.sock"
    interpreter = find_interpreter(name)
    with (
        started(with_client(interpreter.argv, path), "region_holds.py") as workload,
        serving("--mode", "full", "--regions", str(path), "-p", str(workload.pid)),
    ):
        workload.command()
        assert {"connected": True, "told": True} == workload.answer()
        workload.command("fight")
        fighters = workload.answer()["fight"]
        workload.command("alone")
        held_ns, wait_ns, computed_ns, outside_ns, slept_ns = workload.answer()["alone"]

        assert 2 == len(fighters)
        for fought_ns, waited_ns, inside_ns, begin_ns, end_ns in fighters:
            least_ns, most_ns = inside_ns * (1 - _TOLERANCE), end_ns - begin_ns
            assert 0 < waited_ns
            assert least_ns <= fought_ns + waited_ns <= most_ns * (1 + _TOLERANCE)
        all_of_it_ns = max(one[4] for one in fighters) - min(one[3] for one in fighters)
        assert sum(one[0] for one in fighters) <= all_of_it_ns * (1 + _TOLERANCE)
        assert 0 == wait_ns
        assert slept_ns >= _TURNS * _SLEEP_NS
        assert computed_ns * (1 - _TOLERANCE) <= held_ns
        assert held_ns <= outside_ns - _TURNS * _SLEEP_NS


def test_contention_mode_does_not_tell_it(tmp_path: Path) -> None:
    """
    Where not every hold is seen, none is guessed.
    """
    path = tmp_path / "regions.sock"
    with (
        started(with_client(["/usr/bin/python3"], path), "region_holds.py") as workload,
        serving("--mode", "auto", "--regions", str(path), "-p", str(workload.pid)),
    ):
        workload.command("quick")
        assert {"connected": True, "told": None} == workload.answer()
        workload.command("alone")
        held_ns, wait_ns, *_ = workload.answer()["alone"]

        assert (None, 0) == (held_ns, wait_ns)
