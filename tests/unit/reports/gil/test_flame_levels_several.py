"""The files for other tools, made of the recordings of several processes."""

import json
from dataclasses import replace

from gilscope.model.gil import Recording
from gilscope.reports.gil import collapsed, openmetrics, perfetto, prometheus, speedscope
from support.recordings.gil import with_edges, with_timeline
from support.reports.scraped import parse

_S = 1_000_000_000


def _as(recording: Recording, pid: int, ended_ns: int = 10 * _S) -> Recording:
    seen = recording.observation
    seen = replace(seen, process=replace(seen.process, pid=pid))
    return replace(recording, observation=seen, ended_ns=ended_ns)


def _two(recording: Recording) -> tuple[Recording, Recording]:
    return _as(recording, 1), _as(recording, 2)


def test_collapsed_stacks_begin_with_the_process() -> None:
    """
    Below each end, so that both ends still add up.
    """
    alone = collapsed.render(with_edges()).splitlines()
    both = collapsed.render(*_two(with_edges())).splitlines()
    below = [line.replace(";", f";app.py, pid {pid};", 1) for pid in (1, 2) for line in alone]

    assert sorted(below) == sorted(both)


def test_speedscope_has_the_process_as_its_outermost_level() -> None:
    """
    Two profiles as ever, each with the time of both.
    """
    alone, both = (
        json.loads(speedscope.render(*recordings))
        for recordings in ((with_edges(),), _two(with_edges()))
    )
    names = [frame["name"] for frame in both["shared"]["frames"]]
    outermost = {names[sample[0]] for each in both["profiles"] for sample in each["samples"]}

    assert "2 processes" == both["name"]
    assert {"app.py, pid 1", "app.py, pid 2"} == outermost
    assert [2 * each["endValue"] for each in alone["profiles"]] == [
        each["endValue"] for each in both["profiles"]
    ]


def test_timelines_of_all_processes_begin_at_one_origin() -> None:
    """
    Each process has tracks of its own.
    """
    alone = json.loads(perfetto.render(with_timeline()))
    both = json.loads(perfetto.render(*_two(with_timeline())))

    assert 2 * len(alone["traceEvents"]) == len(both["traceEvents"])
    assert {1, 2} == {event["pid"] for event in both["traceEvents"]}
    assert alone["otherData"]["origin_ns"] == both["otherData"]["origin_ns"]


def test_metrics_have_each_process_once() -> None:
    """
    Of a process that has replaced its program, the last one.
    """
    first = _as(with_edges(), 1, ended_ns=5 * _S)
    seen = first.observation
    first = replace(first, observation=replace(seen, process=replace(seen.process, name="old")))
    recordings = (first, *_two(with_edges()))
    plain = parse(prometheus.render(*recordings))
    timed = openmetrics.render(*recordings)

    samples = [sample for family in plain.families for sample in family.samples]
    assert {("app.py", "1"), ("app.py", "2")} == {
        (sample.labels["process"], sample.labels["pid"]) for sample in samples
    }
    heads = [line for line in timed.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))
    assert 'pid="1"' in timed
    assert 'pid="2"' in timed
    assert 'process="old"' not in timed
    assert timed.endswith("# EOF\n")
