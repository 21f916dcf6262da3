"""The figures that reports are compared by, out of their JSON."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gilscope.model.application import Application
from gilscope.model.gil import Recording, TracingCost
from gilscope.reports import session_json
from gilscope.verdict.figures import Unreadable, figures_of
from support.recordings.gil import MS, convoy, session_of, with_edges


def _json(*recordings: Recording) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(session_json.render(session_of(*recordings)))
    return report


def _with_cpu(recording: Recording, used_ns: int) -> Recording:
    seen = recording.observation
    cost = TracingCost(MS, 0.01, 10, used_ns=used_ns)
    return replace(recording, observation=replace(seen, totals=replace(seen.totals, cost=cost)))


def test_figures_are_rates() -> None:
    """
    So that a recording of two seconds can be compared with one of ten.
    """
    figures = figures_of(_json(_with_cpu(with_edges(), 970 * MS)))

    assert (2.0, 0.97) == (figures.duration_s, figures.waiting)
    assert pytest.approx(2.0) == figures.waiting_per_cpu_s
    assert (50.0, 6.5, 0.041) == (
        figures.convoys_per_s,
        figures.slow_drops_per_s,
        figures.longest_drop_s,
    )
    assert pytest.approx(0.004020249) == figures.wait_p50_s
    assert pytest.approx(0.014746338) == figures.wait_p99_s
    assert 0.485 == figures.cores


def test_roles_are_without_lines() -> None:
    """
    Threads of each that waited at any moment, the costliest first.
    """
    roles = figures_of(_json(with_edges())).roles

    assert {
        "serve (app.py)": pytest.approx(0.765),
        "crunch (app.py)": pytest.approx(0.205),
    } == roles


def test_places_are_functions_of_the_application() -> None:
    """
    Without lines, which move; a library is one if the user says so, or by where it lies.
    """
    report = _json(with_edges())
    places = figures_of(report).places
    library = figures_of(report, Application(packages=("match",))).places

    assert {
        "crunch (app.py)": pytest.approx(0.735),
        "Pattern.scan <café> (match.py)": pytest.approx(0.175),
        "(no Python code)": pytest.approx(0.035),
        "(unknown)": pytest.approx(0.025),
    } == places
    assert list(places) == sorted(places, key=lambda place: -places[place])
    assert pytest.approx(0.735) == library["(libraries alone)"]
    assert pytest.approx(0.97) == sum(places.values())


def test_processes_count_together() -> None:
    """
    But those whose figures cannot be trusted, which have none.
    """
    broken = replace(convoy(), observation=replace(convoy().observation, invalid="wrong place"))
    figures = figures_of(_json(convoy(), convoy(), broken))

    assert (1.94, 100.0) == (figures.waiting, figures.convoys_per_s)


def test_what_a_recording_does_not_tell_is_unknown() -> None:
    """
    CPU time of one process, or waits where there were none.
    """
    quiet = replace(convoy(), observation=replace(convoy().observation, invalid="wrong place"))
    alone, nothing = figures_of(_json(convoy())), figures_of(_json(quiet))

    assert None is alone.waiting_per_cpu_s
    assert (None, None, 0.0) == (nothing.wait_p50_s, nothing.wait_p99_s, nothing.waiting)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ([], "no report of gilscope record"),
        ({"version": 2}, "no report of gilscope record"),
        ({"version": 1, "processes": []}, "version 1, not 2"),
        ({"version": 2, "processes": [{}], "duration_s": 1}, "lacks something"),
        ({"version": 2, "processes": [], "duration_s": 0}, "no time at all"),
        ({"version": 2, "processes": [], "duration_s": "x"}, "lacks something"),
        ({"version": 2, "processes": [7], "duration_s": 1}, "lacks something"),
    ],
)
def test_anything_else_is_refused(report: object, words: str) -> None:
    """
    With what is wrong.
    """
    with pytest.raises(Unreadable, match=words):
        figures_of(report)
