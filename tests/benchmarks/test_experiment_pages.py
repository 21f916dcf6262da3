"""Pages of experiments, from results that are made by hand: tables, pictures, the index."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from bench.experiments.cells import BUSY, MEASURED, Cell, Experiment, Outcome, Results
from bench.experiments.inventory import ROWS, index_table
from bench.experiments.load import SHARES
from bench.experiments.pages import page
from bench.experiments.table import EXPERIMENTS

_TIMED = [each for each in EXPERIMENTS if any(cell.timed for cell in each.cells(False))]


class _Any(dict[str, Any]):
    """Figures of which every one is there: 1.5, and as often as there are percentiles."""

    def get(self, _key: str, _default: object = None) -> float:
        return 1.5

    def __missing__(self, key: str) -> float | list[float]:
        return [1.5] * len(SHARES) if key in ("due_ms", "sent_ms") else 1.5


def _results(experiment: Experiment, state: str) -> Results:
    def outcome(cell: Cell, number: int) -> Outcome:
        figures: Mapping[str, Any] = _Any() if state == MEASURED else {}
        return Outcome(cell.key, dict(cell.axes), number, state, figures)  # type: ignore[arg-type]

    rounds = [outcome(cell, number) for number in range(2) for cell in experiment.cells(False)]
    return Results(experiment.name, {"CPU": "made"}, tuple(rounds))


@pytest.mark.parametrize("experiment", _TIMED, ids=lambda each: each.name)
def test_a_page_is_made_of_whatever_was_measured(experiment: Experiment) -> None:
    """
    Of all cells, of none that passed the gate, and of no run at all.
    """
    whole = _results(experiment, MEASURED)
    for picture in experiment.pictures(whole).values():
        # S314: written by the functions under test.
        assert ET.fromstring(picture).tag.endswith("svg")  # noqa: S314
    assert experiment.pictures(whole)
    assert "There are no figures yet" not in page(experiment, whole, [])
    assert set(experiment.found(whole)) <= set(experiment.sources)

    busy = page(experiment, _results(experiment, BUSY), [])
    assert BUSY in busy
    assert "There are no figures yet" in busy
    assert "1.5" not in page(experiment, Results(experiment.name, {}), []).partition("\n|")[2]


def test_a_page_says_how_much_its_cells_had_of_the_machine() -> None:
    """
    The worst of them, before, after and meanwhile.
    """
    experiment = _TIMED[0]
    first, second, *_ = _results(experiment, MEASURED).outcomes
    outcomes = (
        replace(first, spin_share=0.95, stolen_share=0.021),
        replace(second, spin_share=0.92, stolen_share=0.004),
    )
    text = page(experiment, replace(_results(experiment, MEASURED), outcomes=outcomes), [])

    assert "| a spin got of each CPU, at least | 92 % |" in text
    assert "| the hypervisor took away, at most | 2.1 % |" in text


def test_the_index_has_a_row_for_each_experiment() -> None:
    """
    With our figure, or the page that will have it, or why there is none.
    """
    text = index_table({"S4": ("ours", "yes")}, {"S4": ["made"], "S6": ["made"]}, ["made"])
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()[2:]}

    assert [row.key for row in ROWS] == list(lines)
    assert lines["S4"].endswith("| ours | yes | [made](made.md) |")
    assert lines["S6"].endswith("| not measured yet | - | [made](made.md) |")
    assert lines["S17"].endswith("| - | - | none: not an experiment |")
