"""Experiments are run in turns, kept cell by cell, and continued where they were stopped."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.experiments import store
from bench.experiments.cells import BUSY, MEASURED, Cell, CellFailed, Experiment, Results
from bench.experiments.gate import Gate
from bench.experiments.pages import page, shown
from bench.experiments.running import Runner, planned, planned_s


def _experiment(*cells: Cell) -> Experiment:
    def found(_: Results) -> Mapping[str, tuple[str, str]]:
        return {}

    return Experiment(
        "made", "Made", ("S1",), {"figure": 1}, lambda _: cells, lambda _: "", found_none, found
    )


def found_none(_: Results) -> Mapping[str, str]:
    """Return no pictures."""
    return {}


def _cell(key: str, measure: Callable[[], dict[str, float]], rounds: int = 1) -> Cell:
    return Cell(key, {"arm": key}, "one", 1.0, measure, rounds, timed=False)


def _runner(folder: Path, deadline_s: float = math.inf) -> Runner:
    return Runner(folder, {"CPU": "made"}, False, deadline_s, lambda _: None)


def test_arms_take_turns() -> None:
    """
    All arms of a round come before the next round, and a quick run has one round.
    """
    cells = [_cell("a", dict, rounds=2), _cell("b", dict, rounds=1), _cell("c", dict, rounds=2)]

    def order(*, is_quick: bool) -> list[tuple[int, str]]:
        return [(number, cell.key) for number, cell in planned(cells, is_quick=is_quick)]

    assert [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "c")] == order(is_quick=False)
    assert [(0, "a"), (0, "b"), (0, "c")] == order(is_quick=True)
    assert 5.0 == planned_s(cells, is_quick=False)


def test_a_run_is_continued(tmp_path: Path) -> None:
    """
    What was measured stays; what failed is tried again; nothing is begun that ends too late.
    """
    calls: list[str] = []

    def count(key: str) -> dict[str, float]:
        calls.append(key)
        return {"figure": float(len(calls))}

    def fail() -> dict[str, float]:
        calls.append("failed")
        raise CellFailed("its known answer did not come")

    first = _runner(tmp_path).run(_experiment(_cell("a", lambda: count("a")), _cell("b", fail)))
    late = _runner(tmp_path, 0.0).run(_experiment(_cell("b", lambda: count("b"))))
    again = _runner(tmp_path).run(
        _experiment(_cell("a", lambda: count("a")), _cell("b", lambda: count("b")))
    )

    assert ["a", "failed", "b"] == calls
    states = [each.state for each in first.outcomes]
    assert [MEASURED, "not measured: its known answer did not come"] == states
    assert first.outcomes == late.outcomes
    assert [1.0] == again.values("figure", arm="a")
    assert [3.0] == again.values("figure", arm="b")
    assert again == store.read("made", tmp_path)


class _Gate(Gate):
    """Has seen what it is told."""

    def __init__(self, *looks: tuple[float, str | None]) -> None:
        super().__init__()
        self._looks = list(looks)

    def is_shut(self, cpus: Sequence[int]) -> str | None:
        assert cpus
        self.least_share, why = self._looks.pop(0)
        return why


def test_a_figure_has_what_the_machine_left_for_it(tmp_path: Path) -> None:
    """
    The worse of two looks, before and after; of a machine that turns busy there is none.
    """
    gate = _Gate((0.97, None), (0.93, None), (0.98, None), *[(0.5, "busy")] * 3)
    runner = replace(_runner(tmp_path), gate=gate)
    runner = replace(runner, pause_s=0.0)
    cells = [replace(_cell(key, lambda: {"figure": 1.0}), timed=True) for key in ("a", "b")]
    kept, none = runner.run(_experiment(*cells)).outcomes

    assert (MEASURED, 0.93) == (kept.state, kept.spin_share)
    assert kept.stolen_share is not None
    assert (BUSY, None, {}) == (none.state, none.spin_share, none.figures)


def test_results_have_the_figures_of_the_source(tmp_path: Path) -> None:
    """
    Beside ours, in one file.
    """
    _runner(tmp_path).run(_experiment(_cell("a", lambda: {"figure": 2.0})))

    kept = json.loads((tmp_path / "made.json").read_text())

    assert {"figure": 1} == kept["source"]
    assert [{"figure": 2.0}] == [each["figures"] for each in kept["outcomes"]]


def test_a_cell_without_a_number_says_why(tmp_path: Path) -> None:
    """
    In its place in a table, and in the list of the page.
    """

    def busy() -> dict[str, float]:
        raise CellFailed("busy")

    experiment = _experiment(_cell("a", busy))
    results = _runner(tmp_path).run(experiment)

    assert BUSY == shown(results, "figure", 1, arm="a")
    assert "-" == shown(results, "figure", 1, arm="unknown")
    (failed,) = results.outcomes
    ran = replace(failed, state=MEASURED, figures={"figure": 1.0})
    assert "-" == shown(replace(results, outcomes=(failed, ran)), "other", 1, arm="a")
    text = page(experiment, results, [])
    assert "`make experiments ONLY=made` measures it" in text
    assert "a, round 1: not measured: busy" in text
