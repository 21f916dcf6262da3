"""Counters of services that continue where those of the agent before have ended."""

import json
from dataclasses import replace

import pytest

from gilscope.exporter.kept_counters import KeptCounters
from gilscope.exporter.otlp import encode_otlp
from gilscope.exporter.targets import Targets
from gilscope.model.observation import Observation
from gilscope.series.blocking import BlockingSeries
from gilscope.text.units import NS_PER_S
from support.recordings.gil import MS, PROCESS, gil, histogram
from support.reports.services import CONVOYS, WAITS, ScrapedAgent, of_service, worker

_BEGAN_NS = 1_700_000_000 * NS_PER_S
_HOUR_NS = 3600 * NS_PER_S
_SUM = "gilscope_gil_wait_seconds_sum"
_WAITS = "gilscope_gil_wait_seconds"
_A = [[["a", "", "", ""], _BEGAN_NS]]
_LOST = "gilscope_gil_thread_wait_seconds_total"


def _document(told: object, families: object) -> str:
    return json.dumps({"told": told, "families": families})


def _kept(text: str = "", began_ns: int = _BEGAN_NS) -> KeptCounters:
    return KeptCounters(text, began_ns, lambda: began_ns, lambda: True)


def _left_by(*waits: int) -> str:
    """Return what an agent has left that has seen workers with so many waits."""
    kept = _kept()
    ScrapedAgent(kept).scrape(*(worker(pid, waits=each) for pid, each in enumerate(waits, 1)))
    return kept.dumped()


def test_counters_continue_after_a_restart() -> None:
    """
    Numbers, times and histograms; what a gauge says is of now.
    """
    agent = ScrapedAgent(_kept(_left_by(3, 4)))
    first = agent.scrape(worker(1, waits=0))
    then = agent.scrape(worker(1, waits=5))

    assert [7, 12] == [of_service(each, CONVOYS, interpreter="0") for each in (first, then)]
    of_gil = {"interpreter": "0", "after": "blocking_call"}
    assert [7, 12] == [of_service(each, WAITS, **of_gil) for each in (first, then)]
    assert [0.14, 0.24] == [of_service(each, _SUM, **of_gil) for each in (first, then)]
    role = "serve (app.py:8)"
    lost_s = [of_service(each, _LOST, role=role) for each in (first, then)]
    assert pytest.approx([0.14, 0.24]) == lost_s
    assert 1 == of_service(then, "gilscope_target_processes")


def test_it_continues_through_many_restarts() -> None:
    """
    What was counted by the first agent of all is still in it.
    """
    text = _left_by(3, 4)
    for _ in range(3):
        kept = _kept(text)
        last = ScrapedAgent(kept).scrape(worker(1, waits=2))
        text = kept.dumped()

    assert 13 == of_service(last, CONVOYS, interpreter="0")


def test_what_nobody_was_told_again_is_kept_for_an_hour() -> None:
    """
    A service that is not there while one agent runs continues under the next one.
    """
    text = _left_by(3)
    other = replace(PROCESS, name="other.py")
    now = iter((_BEGAN_NS, _BEGAN_NS + _HOUR_NS - 1, _BEGAN_NS + _HOUR_NS))
    kept = KeptCounters(text, _BEGAN_NS, now.__next__, lambda: True)
    ScrapedAgent(kept).scrape(worker(1, waits=1, process=other))
    soon, late = kept.dumped(), kept.dumped()

    agents = [ScrapedAgent(_kept(each)) for each in (soon, late)]
    assert [4, 1] == [
        of_service(each.scrape(worker(1, waits=1)), CONVOYS, interpreter="0") for each in agents
    ]


def test_what_was_left_an_hour_ago_is_not_continued() -> None:
    """
    It begins at 0, as every counter does.
    """
    kept = _kept(_left_by(3), _BEGAN_NS + _HOUR_NS)

    assert 1 == of_service(ScrapedAgent(kept).scrape(worker(1, waits=1)), CONVOYS, interpreter="0")


def test_what_is_forgotten_meanwhile_begins_at_0() -> None:
    """
    Not at what the agent before had: who sees a counter fall takes all of it for new.
    """
    agent = ScrapedAgent(_kept(_left_by(3)))
    before = agent.scrape(worker(1, waits=5))
    other = replace(PROCESS, name="other.py")
    minutes = 600 * NS_PER_S
    agent.scrape(worker(9, at_ns=minutes, process=other))
    agent.scrape(worker(9, at_ns=2 * minutes, process=other))
    after = agent.scrape(worker(2, at_ns=2 * minutes, waits=2))

    assert [8, 2] == [of_service(each, CONVOYS, interpreter="0") for each in (before, after)]


def test_nothing_of_a_histogram_falls_by_a_part() -> None:
    """
    A service that is begun anew may wait as often as before, for less time.
    """
    agent = ScrapedAgent(_kept(_left_by(3)))
    before = agent.scrape(worker(1, waits=5))
    lock = gil(blocking_call=histogram(*[MS] * 6))
    briefer = worker(2, waits=6)
    briefer = replace(briefer, totals=replace(briefer.totals, gils=(lock,)))
    other = replace(PROCESS, name="other.py")
    minutes = 600 * NS_PER_S
    agent.scrape(worker(9, at_ns=minutes, process=other))
    agent.scrape(worker(9, at_ns=2 * minutes, process=other))
    later = replace(briefer, totals=replace(briefer.totals, at_ns=2 * minutes))
    after = agent.scrape(later)

    of_gil = {"interpreter": "0", "after": "blocking_call"}
    assert [0.16, 0.006] == [of_service(each, _SUM, **of_gil) for each in (before, after)]
    assert [8, 6] == [of_service(each, WAITS, **of_gil) for each in (before, after)]


def test_roles_continue_where_one_scrape_tells_nothing_of_them() -> None:
    """
    The last worker has ended between two scrapes: its waits are told, and none of its roles.
    """
    agent = ScrapedAgent(_kept(_left_by(3)))
    other = worker(9, process=replace(PROCESS, name="other.py"))
    role = "serve (app.py:8)"
    first = agent.scrape(worker(1, waits=5), other)
    agent.look(replace(worker(1, waits=7), ended=True), other)
    agent.look(other)
    gone = agent.scrape(other)
    again = agent.scrape(worker(2, waits=1), other)

    lost_s = [of_service(each, _LOST, role=role) for each in (first, gone, again)]
    assert [pytest.approx(0.16), None, pytest.approx(0.22)] == lost_s
    waits = [of_service(each, CONVOYS, interpreter="0") for each in (first, gone, again)]
    assert [8, 10, 11] == waits


def test_what_a_service_does_not_tell_any_more_is_not_handed_on() -> None:
    """
    Lines of code that it has no more, for as many restarts as there are.
    """
    document = json.loads(_left_by(3))
    document["families"][_LOST].append([["app.py", "", "", "", "gone (app.py:1)"], 5.0, 1])
    kept = _kept(json.dumps(document))
    ScrapedAgent(kept).scrape(worker(1, waits=1))
    left = json.loads(kept.dumped())

    assert ["gone (app.py:1)"] == [row[0][4] for row in document["families"][_LOST] if row[1] == 5]
    assert "gone (app.py:1)" not in {row[0][4] for row in left["families"][_LOST]}


def test_of_a_crowd_of_services_none_is_remembered_for_ever() -> None:
    """
    One that is forgotten in the scrape that would tell of it last is not told.
    """
    kept = _kept()
    agent = ScrapedAgent(kept)
    for burst in range(3):
        crowd = [
            worker(
                number,
                at_ns=(burst * 1000 + 1) * NS_PER_S,
                waits=1,
                process=replace(PROCESS, container_id=f"{burst * 1000 + number:064x}"),
            )
            for number in range(1, 400)
        ]
        agent.look(*crowd)
        agent.scrape(worker(999, at_ns=(burst * 1000 + 2) * NS_PER_S))

    assert len(json.loads(kept.dumped())["told"]) <= 257


def test_counters_that_were_forgotten_are_not_left() -> None:
    """
    Neither they nor whose they were: an agent that sees a thousand containers a day keeps none.
    """
    kept = _kept()
    agent = ScrapedAgent(kept)
    minutes = 600 * NS_PER_S
    for number in range(3):
        process = replace(PROCESS, container_id=f"{number:064x}")
        agent.scrape(worker(number, at_ns=number * minutes, waits=1, process=process))
    document = json.loads(kept.dumped())

    assert 2 == len(document["told"])
    assert 2 == len({tuple(labels) for labels, *_ in document["families"][CONVOYS]})


def test_where_it_cannot_be_noted_all_begins_at_0() -> None:
    """
    The next agent would take what this one has told for its own.
    """
    kept = KeptCounters(_left_by(3), _BEGAN_NS, lambda: _BEGAN_NS, lambda: False)

    assert 1 == of_service(ScrapedAgent(kept).scrape(worker(1, waits=1)), CONVOYS, interpreter="0")


def test_nothing_is_told_that_the_next_agent_does_not_know() -> None:
    """
    Neither before it was said that this one has begun, nor after it has ended.
    """
    told: list[str] = []

    def note() -> bool:
        told.append("begun")
        return True

    kept = KeptCounters("", _BEGAN_NS, lambda: _BEGAN_NS, note)
    agent = ScrapedAgent(kept)
    assert [] == told
    agent.scrape(worker(1, waits=1))
    assert ["begun"] == told
    kept.dumped()
    assert of_service(agent.scrape(worker(1, waits=2)), CONVOYS, interpreter="0") is None


def test_otlp_says_since_when_it_was_counted() -> None:
    """
    Since the start of the first agent, or of this one where that has told nothing of a service.
    """
    kept = _kept(_left_by(3), _BEGAN_NS + NS_PER_S)
    other = replace(PROCESS, name="other.py")
    families = Targets(BlockingSeries(by_service=True), kept).series(
        [Observation(gil=worker(1, waits=1)), Observation(gil=worker(2, process=other))]
    )
    request = json.loads(encode_otlp(families.values(), _BEGAN_NS + NS_PER_S, _BEGAN_NS, "host"))
    (scope,) = request["resourceMetrics"][0]["scopeMetrics"]
    begun = {
        metric["name"]: {
            int(point["startTimeUnixNano"])
            for kind in ("sum", "gauge", "histogram")
            for point in metric.get(kind, {}).get("dataPoints", ())
        }
        for metric in scope["metrics"]
    }

    assert {_BEGAN_NS, _BEGAN_NS + NS_PER_S} == begun[CONVOYS] == begun[_WAITS]
    assert {_BEGAN_NS + NS_PER_S} == begun["gilscope_target_processes"]


def test_rows_of_another_version_are_left_out() -> None:
    """
    A family that is not known any more, or has other labels now; the others continue.
    """
    document = json.loads(_left_by(3))
    document["families"]["gilscope_once_total"] = [[["app.py", "", "", ""], 5, 1]]
    document["families"][_LOST] = [[["app.py", "", "", "", "role", "one more"], 5, 1]]
    figures = ScrapedAgent(_kept(json.dumps(document))).scrape(worker(1, waits=1))

    assert 4 == of_service(figures, CONVOYS, interpreter="0")
    assert 0.02 == of_service(figures, _LOST, role="serve (app.py:8)")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "{}",
        '{"told": 5, "families": {}}',
        '{"told": [[["a", "", "", ""], Infinity]], "families": {}}',
        "[" * 100_000,
        _document(_A, {CONVOYS: [[["a", "", "", "", "0"], "five", 1]]}),
        _document(_A, {_WAITS: [[["a", "", "", "", "0", "start"], [1, [[999, 1]]], 1]]}),
        _document(_A, {_WAITS: [[["a", "", "", "", "0", "start"], 5, 1]]}),
        _document(_A, {CONVOYS: [[["a", "", "", "", "0"], None, 1]]}),
    ],
)
def test_what_is_broken_is_refused(text: str) -> None:
    """
    As one error, whatever it is that is wrong.
    """
    with pytest.raises(ValueError, match=r"."):
        _kept(text)
