"""From followed logs to families."""

from collections.abc import Sequence

import pytest

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode
from gilscope.exporter.stm_log import ERRORS, stm_families
from gilscope.series.conflicts import ConflictSeries
from gilscope.stm_log.sums import FollowedLog
from gilscope.text.printable import LONGEST_LABEL
from support.reports.scraped import OPEN_METRICS, PLAIN, Fixed, Scrape, parse, read
from support.stm_log.following import followed_log
from support.stm_log.program import played_log
from support.stm_log.reading import log_of
from support.stm_log.writer import MS, LogWriter, marker

_CONTENT = played_log("E16", 6000).content


def _scrape(book: ConflictSeries, *logs: FollowedLog, content_type: str = PLAIN) -> Scrape:
    return parse(encode(stm_families(logs, book, 0), content_type).decode(), content_type)


def _aborts(lines: Sequence[int]) -> bytes:
    """Return a log in which each of *lines* loses 50 ms."""
    writer = LogWriter()
    for number, line in enumerate(lines):
        begin_ns = number * 100 * MS
        writer.add(begin_ns, 1, "START")
        writer.add(begin_ns + 50 * MS, 1, "WRITE_READ", marker(line, file="/srv/app.py"))
        writer.add(begin_ns + 50 * MS, 1, "ABORT")
    return writer.content


@pytest.mark.parametrize("content_type", [PLAIN, OPEN_METRICS])
def test_figures_are_those_of_a_report(content_type: str) -> None:
    """
    Of the same log: transactions, their times, collections, waits and all conflicts.
    """
    log = log_of(_CONTENT)
    totals = log.totals

    figures = _scrape(ConflictSeries(5), followed_log(_CONTENT), content_type=content_type)

    def value(name: str, **labels: str) -> float | None:
        return figures.value(f"gilscope_stm_{name}", log="app.log", **labels)

    def total(name: str) -> float:
        return figures.total(f"gilscope_stm_{name}")

    assert totals.commits == value("transactions_total", outcome="commit")
    assert totals.aborts == value("transactions_total", outcome="abort")
    assert totals.commits == value("transaction_seconds_count")
    assert totals.committed_ns / 1e9 == value("transaction_seconds_sum")
    assert totals.aborts == value("abort_cost_seconds_count")
    assert totals.aborted_ns / 1e9 == value("abort_cost_seconds_sum")
    assert totals.minor_gc_ns / 1e9 == value("gc_seconds_total", generation="minor")
    assert totals.major_gc_ns / 1e9 == value("gc_seconds_total", generation="major")
    assert {kind.removeprefix("STM_"): ns / 1e9 for kind, (ns, _) in totals.waits.items()} == {
        sample.labels["kind"]: sample.value
        for sample in figures.samples("gilscope_stm_wait_seconds_total")
    }
    assert sum(conflict.count for conflict in log.conflicts) == total("conflicts_total")
    assert sum(conflict.lost_ns for conflict in log.conflicts) / 1e9 == pytest.approx(
        total("abort_cost_seconds_by_site_total"), abs=1e-9
    )
    assert sum(conflict.paused_ns for conflict in log.conflicts) / 1e9 == pytest.approx(
        total("pause_seconds_total"), abs=1e-9
    )
    assert (len(_CONTENT), 0) == (value("log_bytes_total"), value("log_lag_bytes"))


def test_every_log_has_its_series_from_the_start() -> None:
    """
    The first abort and the first error are an increase.
    """
    figures = _scrape(ConflictSeries(5), followed_log())

    assert 0 == figures.value("gilscope_stm_transactions_total", log="app.log", outcome="abort")
    assert [0] * len(ERRORS) == [
        figures.value("gilscope_stm_log_errors_total", log="app.log", reason=reason)
        for reason in ERRORS
    ]


def test_errors_lag_and_names() -> None:
    """
    A log is what a process and its forks have written.
    """
    gap = _CONTENT + bytes(40) + played_log("E16", 300, seed=2).content[16:]

    figures = _scrape(
        ConflictSeries(5), followed_log(gap, lag_bytes=7), followed_log(_CONTENT, name="b.log")
    )

    assert 1 == figures.value("gilscope_stm_log_errors_total", log="app.log", reason="gap")
    assert 0 == figures.value("gilscope_stm_log_errors_total", log="b.log", reason="gap")
    assert 7 == figures.value("gilscope_stm_log_lag_bytes", log="app.log")
    assert 0 == figures.value("gilscope_stm_log_lag_bytes", log="b.log")


def test_dear_places_get_series_and_nothing_falls_or_is_lost() -> None:
    """
    At most so many, from 0 on; all together are what all conflicts have cost.
    """
    book = ConflictSeries(4)
    name = "gilscope_stm_abort_cost_seconds_by_site_total"
    labels = {"log": "app.log", "kind": "CONTENTION_WRITE_READ"}
    before: dict[str, float] = {}
    lines: list[int] = []
    for turn in range(1, 6):
        lines += [1, 1, 1, 2, 2, 3, 10 + turn]
        figures = _scrape(book, followed_log(_aborts(lines)))
        now = {sample.labels["site"]: sample.value for sample in figures.samples(name)}

        assert len(lines) * 0.05 == pytest.approx(sum(now.values()))
        assert all(now[site] >= value for site, value in before.items())
        before = now

    assert {"other", "f (app.py:1)", "f (app.py:2)", "f (app.py:3)"} < set(before)
    assert 1 + 4 == len(before)
    assert figures.value(name, **labels, site="f (app.py:1)", other_site="") == pytest.approx(0.6)


def test_places_are_named_by_what_the_log_has() -> None:
    """
    Both ends of a C7 conflict; none, a raw number, and what is no file.
    """
    raw = (57).to_bytes(8, "little")
    writer = LogWriter("L7")
    for number in range(50):
        begin_ns = number * 1000 * MS
        for at, (first, second) in enumerate(
            [
                (marker(1).encode(), marker(2, "g").encode()),
                (b"", b""),
                (raw, b""),
                (marker(3, file="<string>").encode(), b""),
            ]
        ):
            now_ns = begin_ns + at * 100 * MS
            writer.add(now_ns, 1, "START")
            writer.add(now_ns + 50 * MS, 1, "WRITE_WRITE", first, second, other=2)
            writer.add(now_ns + 50 * MS, 1, "ABORT")
    book = ConflictSeries(20)
    figures = _scrape(book, followed_log(writer.content))

    assert {
        ("other", "other"),
        ("f (app.py:1)", "g (app.py:2)"),
        ("no position: not in a Python function", ""),
        ("position number 57: the program does not say what it stands for", ""),
        ("f (<string>:3)", ""),
    } == {
        (sample.labels["site"], sample.labels["other_site"])
        for sample in figures.samples("gilscope_stm_conflicts_total")
    }


def test_without_slots_there_are_no_series_of_places() -> None:
    """
    All else is there.
    """
    figures = _scrape(ConflictSeries(0), followed_log(_CONTENT))

    assert [] == figures.samples("gilscope_stm_conflicts_total")
    assert 0 < figures.total("gilscope_stm_transactions_total")


def test_logs_that_fail_do_not_break_the_scrape(caplog: pytest.LogCaptureFixture) -> None:
    """
    The figures about the agent are there, and say that others are not.
    """

    def logs() -> Sequence[FollowedLog]:
        raise OSError(5, "Input/output error")

    figures = read(AgentCollector(Fixed().source, logs=logs))

    assert 0 == figures.value("gilscope_scrape_success")
    assert 5000 == figures.value("gilscope_agent_traps_total")
    assert ["this scrape could not read the STM logs"] == [
        record.getMessage() for record in caplog.records
    ]


def test_logs_are_part_of_the_scrape() -> None:
    """
    Beside the processes.
    """
    figures = read(AgentCollector(Fixed().source, logs=lambda: [followed_log(_CONTENT)]))

    assert 1 == figures.value("gilscope_scrape_success")
    assert len(_CONTENT) == figures.total("gilscope_stm_log_bytes_total")


def test_names_of_logs_are_labels_and_stay_apart() -> None:
    """
    Two names of which the same can be shown are two series; none has a character of control.
    """
    names = ("app.log", "a\033[31m.log", "a[31m\x07.log", "x" * 300 + "y", "x" * 300 + "z")
    logs = [followed_log(_CONTENT, name=name) for name in names]

    shown = [
        sample.labels["log"]
        for sample in _scrape(ConflictSeries(5), *logs).samples("gilscope_stm_log_bytes_total")
    ]

    assert shown[0] == "app.log"
    assert len(names) == len(set(shown))
    assert all(name.isprintable() and len(name) <= LONGEST_LABEL for name in shown)
