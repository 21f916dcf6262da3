"""The report on an STM log in exactly the form that PyPy's own tool had.

But for control characters in what a program says of its places: these are left out.
"""

from collections.abc import Iterator, Mapping

from gilscope.model.stm_log import Conflict, StmLog, StmReport
from gilscope.reports.stm_log.words import old_percent
from gilscope.stm_log.markers import position_of
from gilscope.stm_log.reader import time_line_cells
from gilscope.stm_log.time_bins import cells_of
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S

__all__ = ["render"]

_MOST_ENTRIES = {"S0": 14, "S1": 15, "S2": 15}
_MOST_ENTRIES_SINCE_2015_09 = 5
_TABLES_BEFORE_2015_09 = {"C7", "A11", "B12", "C13"}
_TABLES_BEFORE_NUMBERS = {"C13", "D14"}
"""Of the times before the report told how many transactions there were."""


def render(report: StmReport) -> str:
    """Return the report on each log, one after the other."""
    return "".join("\n".join(_lines(group.summary, report)) + "\n" for group in report.groups)


def _lines(log: StmLog, report: StmReport) -> Iterator[str]:
    if log.semantics == "S2":
        yield from _head(log)
    else:
        yield from _early_head(log)
    yield ""
    most = report.most_entries
    if most is None:
        most = _MOST_ENTRIES[log.semantics]
        if log.events_table not in _TABLES_BEFORE_2015_09:
            most = _MOST_ENTRIES_SINCE_2015_09
    for conflict in log.conflicts[:most]:
        yield from _entry(conflict, report.sources)
        if log.semantics != "S0":
            yield f"time line: {_time_line(conflict, log)}"
        yield ""


def _early_head(log: StmLog) -> Iterator[str]:
    totals = log.totals
    if log.semantics != "S0":
        yield ""
    yield f"Total real time:  {totals.total_ns / NS_PER_S:16.3f}s"
    yield (
        f"Total CPU time in STM mode:  {totals.cpu_ns / NS_PER_S:5.3f}s "
        f"({old_percent(totals.cpu_ns, totals.total_ns).strip()})"
    )


def _head(log: StmLog) -> Iterator[str]:
    totals = log.totals
    sum_ns = totals.committed_ns + totals.aborted_ns + totals.paused_ns
    yield ""
    for label, time_ns, words in (
        ("CPU time in STM mode:", totals.committed_ns, "committed"),
        ("", totals.aborted_ns, "aborted"),
        ("", totals.paused_ns, "paused"),
        ("", sum_ns, "TOTAL"),
        ("           including ", totals.minor_gc_ns, "minor GC collections"),
        ("                 and ", totals.major_gc_ns, "major GC collections"),
    ):
        if label.startswith("CPU"):
            yield f"Total real time:     {totals.total_ns / NS_PER_S:9.3f}s"
        share = old_percent(time_ns, totals.total_ns)
        yield f"{label:21}{time_ns / NS_PER_S:9.3f}s ({share}) {words}"
    if log.events_table in _TABLES_BEFORE_NUMBERS:
        return
    number = totals.commits + totals.aborts
    # By the time spent in transactions, not by the time that has passed.
    per_s = number * NS_PER_S / sum_ns if sum_ns else 0.0
    yield (
        f"Total number of transactions:{number:7d} "
        f"committed: {old_percent(totals.commits, number)} "
        f"aborted: {old_percent(totals.aborts, number)}"
    )
    yield f"     transactions per second:{per_s:7.0f}"


def _entry(conflict: Conflict, sources: Mapping[tuple[str, int], str]) -> Iterator[str]:
    yield (
        f"{conflict.lost_ns / NS_PER_S:.3f}s lost in aborts, "
        f"{conflict.paused_ns / NS_PER_S:.3f}s paused ({conflict.count}x {conflict.kind})"
    )
    for marker in conflict.markers or ("",):
        yield f"  {printable(marker)}"
        position = position_of(marker)
        source = position and sources.get((position.file, position.line))
        if source:
            yield f"    {source}"


def _time_line(conflict: Conflict, log: StmLog) -> str:
    cells = time_line_cells(log.events_table)
    counts = cells_of(conflict.over_time, log.first_ns, log.totals.total_ns, cells)
    if log.events_table in _TABLES_BEFORE_2015_09:
        return "".join("x" if count else "." for count in counts)
    return f"|{shaded(counts)}|"


def shaded(counts: list[int]) -> str:
    """Return a character for each of *counts*: nothing, or a third of the largest of them."""
    third = (max(counts, default=0) + 0.1) / 3
    return "".join(" " if not count else "_xX"[int(count / third)] for count in counts)
