"""The recording as OpenMetrics text with times."""

import re
from dataclasses import replace

import pytest

from gilscope.model.gil import GilObservation, Recording
from gilscope.reports.gil import openmetrics, prometheus
from support.recordings.gil import MS, full_mode, with_edges
from support.reports.scraped import OPEN_METRICS, parse

_OF_PROCESS = (
    'process="app.py",pid="4711",container_id="",pod_uid="",interpreter="0",'
    'job="gilscope",instance="web-1"'
)
_BEGAN, _ENDED = "1700000000.251", "1700000002.251"


def _ended(recording: Recording) -> Recording:
    return replace(recording, ended_ns=1_700_000_002_251_500_000, host="web-1")


def _at(text: str, time: str) -> str:
    """Return what *text* says of one moment, without the times."""
    # The library's parser takes all buckets of a second moment but one for duplicates.
    lines = [line for line in text.splitlines() if line.startswith("#") or line.endswith(time)]
    return "\n".join(line.removesuffix(time).rstrip() for line in lines) + "\n"


def test_what_counts_begins_at_zero() -> None:
    """
    A counter has two lines: nothing when the recording began, all when it ended.
    """
    text = openmetrics.render(_ended(with_edges()))
    lines = [line for line in text.splitlines() if "convoy_waits" in line]

    assert "# TYPE gilscope_gil_convoy_waits counter" == lines[1]
    assert [
        f"gilscope_gil_convoy_waits_total{{{_OF_PROCESS}}} 0 {_BEGAN}",
        f"gilscope_gil_convoy_waits_total{{{_OF_PROCESS}}} 100 {_ENDED}",
    ] == lines[2:]


@pytest.mark.parametrize("recording", [with_edges(), full_mode()], ids=["contention", "full"])
def test_end_is_what_the_older_format_says(recording: Recording) -> None:
    """
    With the labels of a scrape, both formats have the same figures, and a parser reads them.
    """
    ended = parse(_at(openmetrics.render(_ended(recording)), _ENDED), OPEN_METRICS)
    plain = parse(prometheus.render(recording))
    scraped = {"job": "gilscope", "instance": "web-1"}

    assert {
        (name, tuple(sorted({**labels, **scraped}.items()))): value
        for family in plain.families
        for name, labels, value, *_ in family.samples
    } == {
        (name, tuple(sorted(labels.items()))): value
        for family in ended.families
        for name, labels, value, *_ in family.samples
    }


def test_beginning_has_zeros_and_no_gauges() -> None:
    """
    Histograms are there with all of their buckets; what threads did then is not known.
    """
    text = openmetrics.render(_ended(full_mode()))
    began = parse(_at(text, _BEGAN), OPEN_METRICS)
    ended = parse(_at(text, _ENDED), OPEN_METRICS)
    gauges = {"gilscope_gil_waiting_threads", "gilscope_gil_longest_wait_seconds"}
    gauges |= {"gilscope_gil_longest_hold_seconds", "gilscope_probe_valid"}
    gauges |= {"gilscope_target_overhead_ratio", "gilscope_gil_stack_sampling_ratio"}
    gauges |= {"gilscope_target_info", "gilscope_target_processes"}

    assert {0.0} == {sample.value for family in began.families for sample in family.samples}
    assert gauges == ended.names() - began.names()


def test_looks_stand_between_the_beginning_and_the_end() -> None:
    """
    Each with its own time, in the order of time; one at the very end is the end.
    """
    recording = _ended(with_edges())
    seen = recording.observation

    def seen_at(at_ns: int, convoy_waits: int) -> GilObservation:
        (gil,) = seen.totals.gils
        gils = (replace(gil, convoy_waits=convoy_waits),)
        return replace(seen, totals=replace(seen.totals, at_ns=at_ns, gils=gils, edges=()))

    # The observation is of 1000 ms, and of the recording's end.
    snapshots = (seen_at(200 * MS, 30), seen_at(700 * MS, 60), seen_at(1000 * MS, 100))
    text = openmetrics.render(replace(recording, snapshots=snapshots))
    name = f"gilscope_gil_convoy_waits_total{{{_OF_PROCESS}}}"
    pair = 'waiter="handle (app.py:13)",holder="crunch (app.py:4)",kind="GIL_CONVOY"'

    assert [
        f"{name} 0 {_BEGAN}",
        f"{name} 30 1700000001.451",
        f"{name} 60 1700000001.951",
        f"{name} 100 {_ENDED}",
    ] == [line for line in text.splitlines() if line.startswith(name)]
    assert ["0", "0.0", "0.0", "1.1"] == [
        line.split()[-2]
        for line in text.splitlines()
        if line.startswith("gilscope_gil_blocked_seconds_total") and pair in line
    ]


def test_moment_has_a_beginning_and_an_end() -> None:
    """
    A recording of microseconds still is two moments to Prometheus, which knows milliseconds.
    """
    text = openmetrics.render(replace(_ended(with_edges()), duration_ns=1000))

    times = {line.rpartition(" ")[2] for line in text.splitlines() if not line.startswith("#")}
    assert {"1700000002.250", "1700000002.251"} == times


def test_name_of_the_host_may_be_anything() -> None:
    """
    It is escaped as a label.
    """
    text = openmetrics.render(replace(_ended(with_edges()), host='a"b\\c'))

    assert {r'instance="a\"b\\c"'} == set(re.findall(r'instance="[^}]*"', text))
    assert text.endswith("\n# EOF\n")


def test_distrusted_recording_says_so_and_nothing_else() -> None:
    """
    No figures, rather than wrong ones.
    """
    seen = replace(with_edges().observation, invalid="more releases than acquires")
    text = openmetrics.render(_ended(replace(with_edges(), observation=seen)))

    (line,) = [line for line in text.splitlines() if not line.startswith("#")]
    assert line.startswith("gilscope_probe_valid{")
    assert line.endswith(f"}} 0 {_ENDED}")
