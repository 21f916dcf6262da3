"""The tables of the HTML report, each with its numbers."""

from dataclasses import replace

import pytest

from gilscope.model.gil import Edge, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import StackState
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html import report as html_report
from gilscope.reports.gil.html.pairs import known_ns, lost_ns, pairs_of
from gilscope.reports.html.markup import clean, duration, shade, share, time_lost
from support.recordings.gil import CRUNCHING, MATCHING, MS, SERVING, full_mode, stack, with_edges
from support.reports.html_tree import Element, parse

_EDGES = with_edges().observation.totals.edges


def _section(recording: Recording, name: str) -> Element:
    return parse(html_report.render(recording)).one("section", id=name)


def test_matrix_by_role_has_every_edge_once() -> None:
    """
    Rows are waiters, columns are holders, each with its sum, the costliest first.
    """
    table = _section(with_edges(), "matrix").one("div", class_="matrix-role").one("table")

    assert [
        ["waiter", "held by", "total lost"],
        ["crunch (app.py:2)", "deeper than what is noted", "no Python code", "unknown"],
        ["serve (app.py:8)", "1.130 s", "0.350 s", "·", "0.050 s", "1.530 s"],
        ["crunch (app.py:2)", "0.340 s", "·", "0.070 s", "·", "0.410 s"],
        ["because of it", "1.470 s", "0.350 s", "0.070 s", "0.050 s", "1.940 s"],
    ] == table.rows


def test_matrix_by_site_goes_by_innermost_frames() -> None:
    """
    The same sums, at other places.
    """
    table = _section(with_edges(), "matrix").one("div", class_="matrix-site").one("table")

    assert [
        "crunch (app.py:4)",
        "Pattern.scan <café> (match.py:27)",
        "no Python code",
        "unknown",
    ] == table.rows[1]
    assert ["handle (app.py:13)", "1.130 s", "0.350 s", "·", "0.050 s", "1.530 s"] == table.rows[2]


def test_cells_are_shaded_by_their_part_of_the_largest() -> None:
    """
    Nine steps; what lost nothing has none.
    """
    table = _section(with_edges(), "matrix").one("div", class_="matrix-role").one("table")
    first = table.one("tbody").all("tr")[0]

    assert ["n s9", "n s3", "n none", "n s1", "n sum"] == [
        cell.attributes["class"] for cell in first.all("td")
    ]


def test_pairs_have_both_sites_and_what_was_lost() -> None:
    """
    The costliest first; places that are not known are said in words.
    """
    table = _section(with_edges(), "pairs").one("table")

    assert [
        ["kind", "waiter stood in", "holder stood in", "time lost", "share", "times"],
        ["convoy", "handle (app.py:13)", "crunch (app.py:4)", "1.100 s", "57 %", "90"],
        [
            "convoy",
            "handle (app.py:13)",
            "Pattern.scan <café> (match.py:27)",
            "0.350 s",
            "18 %",
            "30",
        ],
        ["preemption", "crunch (app.py:4)", "crunch (app.py:4)", "0.340 s", "18 %", "90"],
        ["preemption", "crunch (app.py:4)", "no Python code", "0.070 s", "4 %", "20"],
        ["convoy", "handle (app.py:13)", "unknown", "0.050 s", "3 %", "5"],
        ["blocking call", "handle (app.py:13)", "crunch (app.py:4)", "0.030 s", "2 %", "25"],
    ] == table.rows


def test_kinds_that_occur_are_explained() -> None:
    """
    And no others.
    """
    legend = _section(with_edges(), "pairs").one("dl", class_="legend")

    assert ["convoy", "blocking call", "preemption"] == [term.text for term in legend.all("dt")]


def test_edges_between_the_same_sites_are_one_pair() -> None:
    """
    Stacks that differ further out are told apart only when the row is opened.
    """
    elsewhere = replace(SERVING, frames=(*SERVING.frames[:1], *CRUNCHING.frames[1:]))
    edges = (
        Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(2 * MS, 1)),
        Edge(Kind.CONVOY, elsewhere, CRUNCHING, Tally(3 * MS, 2)),
        Edge(Kind.PREEMPTION, SERVING, CRUNCHING, Tally(4 * MS, 1)),
    )

    pairs = pairs_of(edges, SiteNames())

    assert [
        (Kind.CONVOY, Tally(5 * MS, 3), (1, 0)),
        (Kind.PREEMPTION, Tally(4 * MS, 1), (2,)),
    ] == [(pair.kind, pair.lost, pair.edges) for pair in pairs]


def test_known_time_is_that_with_two_known_ends() -> None:
    """
    A thread without Python code is known to have none; an unknown one is not known.
    """
    totals = with_edges().observation.totals

    assert 1890 * MS == known_ns(totals)
    assert 1940 * MS == lost_ns(totals)


@pytest.mark.parametrize("state", [StackState.CUT, StackState.TORN])
def test_part_of_a_stack_is_known(state: StackState) -> None:
    """
    What is missing of a stack does not make its place unknown.
    """
    totals = with_edges().observation.totals
    edge = replace(totals.edges[0], holder=replace(CRUNCHING, state=state))

    assert 1100 * MS == known_ns(replace(totals, edges=(edge,)))


def test_slow_drops_have_their_callers_and_what_they_took() -> None:
    """
    The site, its source line, and a few frames further out.
    """
    recording = with_edges()
    line = {(MATCHING.frames[0].file, 27): "return matcher.scan(text)"}

    section = _section(replace(recording, sources=line), "slow-drops")

    assert [
        ["holder stood in", "drop latency", "longest", "times"],
        [
            ("Pattern.scan <café> (match.py:27)return matcher.scan(text)crunch (app.py:5)"),
            "0.260 s",
            "0.041 s",
            "12",
        ],
        ["no Python code", "0.030 s", "0.030 s", "1"],
    ] == section.one("table").rows


def test_threads_are_told_by_role() -> None:
    """
    Two threads of one role make one row; a kind that did not occur has no column.
    """
    table = _section(with_edges(), "threads").one("table")

    assert [
        ["role", "threads", "time lost", "of its time", "convoy", "blocking call", "preemption"],
        ["serve (app.py:8)", "1", "1.530 s", "76 %", "1.500 s100x", "0.030 s25x", "·"],
        ["crunch (app.py:2)", "2", "0.410 s", "10 %", "·", "·", "0.410 s110x"],
    ] == table.rows


def test_threads_say_in_full_mode_what_they_held() -> None:
    """
    Time, its part of what windows covered, and the number of holds.
    """
    table = _section(full_mode(), "threads").one("table")

    assert [
        ["held", "of the time", "holds"],
        ["0.050 s", "2 %", "125"],
        ["1.750 s", "88 %", "350"],
    ] == [row[-3:] for row in table.rows]


def test_durations_have_a_row_for_each_slot_between_the_first_and_the_last() -> None:
    """
    Bounds in units, and bars as long as their part of the largest.
    """
    waits, latency = _section(with_edges(), "durations").all("table")

    assert (
        "Waits 235, 8.36 ms on average, p50 ≈ 4.02 ms, p99 ≈ 14.7 ms" == waits.one("caption").text
    )
    assert [
        ["longer than", "up to", "number", ""],
        ["524 µs", "1.05 ms", "25", ""],
        ["1.05 ms", "2.1 ms", "0", ""],
        ["2.1 ms", "4.19 ms", "110", ""],
        ["4.19 ms", "8.39 ms", "0", ""],
        ["8.39 ms", "16.8 ms", "100", ""],
    ] == waits.rows
    assert ["22.73%", "100.00%", "90.91%"] == [bar.attributes["width"] for bar in waits.all("rect")]
    assert [["65.5 µs", "131 µs", "200", ""]] == latency.rows[1:]


def test_durations_of_full_mode_include_holds_and_switches() -> None:
    """
    Four histograms; in contention mode two of them would be empty.
    """
    assert [
        "Waits 235, 8.36 ms on average, p50 ≈ 4.02 ms, p99 ≈ 14.7 ms",
        "Drop latency: request to release 200, 90 µs on average, p50 ≈ 88.8 µs, p99 ≈ 88.8 µs",
        "Holds 475, 3.78 ms on average, p50 ≈ 5.21 ms, p99 ≈ 5.21 ms",
        (
            "Switch latency: release to the next acquisition 235, 12 µs on average, "
            "p50 ≈ 12.1 µs, p99 ≈ 12.1 µs"
        ),
    ] == [table.text for table in _section(full_mode(), "durations").all("caption")]


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0.000\u00a0s"),
        (412_345, "412\u00a0µs"),
        (999_999, "1\u00a0ms"),
        (1_000_000, "0.001\u00a0s"),
        (12_345_678_901, "12.346\u00a0s"),
    ],
)
def test_times_keep_their_digits(ns: int, words: str) -> None:
    """
    Seconds to the millisecond, and a smaller unit for what is less than one.
    """
    assert words == time_lost(ns)


def test_small_forms() -> None:
    """
    Durations, shares and shades are those of the tables.
    """
    assert "5.24\u00a0ms" == duration(5_242_880)
    assert "0.052\u00a0%" == share(MS, 1940 * MS)
    assert [0, 1, 9] == [shade(ns, 1000) for ns in (0, 1, 1000)]


def test_text_is_cleaned_and_cut() -> None:
    """
    What a browser would obey rather than show is left out, and long names end in an ellipsis.
    """
    assert "a bc" == clean("a\n\u202eb\x00\ud800c")
    assert ("x" * 399 + "…") == clean("x" * 500)


def test_waiter_without_python_code_is_explained() -> None:
    """
    Below the pairs, where there is one.
    """
    recording = with_edges()
    seen = recording.observation
    edge = Edge(Kind.BLOCKING_CALL, stack(state=StackState.NO_PYTHON), CRUNCHING, Tally(9 * MS, 1))
    entering = replace(seen, totals=replace(seen.totals, edges=(edge,)))
    with_it, without = (
        _section(each, "pairs").one("dl", class_="legend").text
        for each in (replace(recording, observation=entering), recording)
    )

    assert "as a waiter: the thread enters Python" in with_it
    assert "enters Python" not in without
