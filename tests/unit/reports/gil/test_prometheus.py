"""The recording in Prometheus' text format, without times."""

import re

import pytest

from gilscope.model.gil import Recording
from gilscope.reports.gil import prometheus
from support.recordings.gil import full_mode, with_edges
from support.reports.scraped import parse, scrape

_BY_PLACE = ("gilscope_gil_blocked_", "gilscope_gil_holder_", "gilscope_gil_slow_drop")


@pytest.mark.parametrize("recording", [with_edges(), full_mode()], ids=["contention", "full"])
def test_figures_are_those_of_a_scrape(recording: Recording) -> None:
    """
    Everything about the process but its pairs of places is what serve would say at the end.
    """
    written = parse(prometheus.render(recording))
    scraped = scrape(recording.observation)

    assert {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in scraped.families
        for sample in family.samples
        if "pid" in sample.labels and not sample.name.startswith(_BY_PLACE)
    } == {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in written.families
        for sample in family.samples
        if not sample.name.startswith(_BY_PLACE)
    }


def test_pairs_of_places_have_all_that_they_lost() -> None:
    """
    Nothing was shown before, so nothing has to stay under other.
    """
    written = parse(prometheus.render(with_edges()))
    convoy = {"kind": "GIL_CONVOY", "waiter": "handle (app.py:13)"}
    scan = "Pattern.scan <café> (match.py:27)"

    blocked = "gilscope_gil_blocked_seconds_total"
    assert 1.1 == written.of_process(blocked, holder="crunch (app.py:4)", **convoy)
    assert 90 == written.of_process(
        "gilscope_gil_blocked_total", holder="crunch (app.py:4)", **convoy
    )
    assert 0.26 == written.of_process("gilscope_gil_slow_drop_seconds_total", holder=scan)
    assert pytest.approx(1.94) == written.total(blocked)
    assert pytest.approx(1.94) == written.total("gilscope_gil_thread_wait_seconds_total")


def test_what_it_announces_has_samples() -> None:
    """
    A family that the mode cannot see is not in the file, nor are those about the agent.
    """
    text = prometheus.render(with_edges())
    announced = set(re.findall(r"(?m)^# TYPE (\S+)", text))
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"(?m)^\w+", text)}

    assert announced == names
    assert "gilscope_gil_hold_seconds" not in announced
