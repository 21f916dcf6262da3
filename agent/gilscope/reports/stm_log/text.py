"""The report on STM logs that a person reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from gilscope.model.stm_log import Conflict, LogGroup, LogTotals, StmLog, StmReport
from gilscope.reports.stm_log.original import shaded
from gilscope.reports.stm_log.words import headline, meaning_of, old_percent, warnings_of
from gilscope.stm_log.markers import describe, position_of
from gilscope.stm_log.merge import by_line
from gilscope.stm_log.time_bins import cells_of
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, counted, seconds

__all__ = ["MOST_ENTRIES", "render"]

MOST_ENTRIES = 10
_CELLS = 60
_WIDTH = 100


def render(report: StmReport, *, colour: bool = False) -> str:
    """Return the report; *colour* adds terminal colours."""
    paint = Paint(on=colour)
    lines: list[str] = []
    for group in report.groups:
        lines += ["", ""] if lines else []
        lines += _group_lines(group, report, paint)
    warnings = [words for file in report.files for words in warnings_of(file)]
    notes = list(_notes(report))
    for heading, items in (("Warnings", warnings), ("Notes", notes)):
        if items:
            lines += ["", paint.red(heading) if heading == "Warnings" else paint.bold(heading)]
            lines += [line for item in items for line in _wrapped(item)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(words: str) -> list[str]:
    return wrap(printable(words), _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _group_lines(group: LogGroup, report: StmReport, paint: Paint) -> Iterator[str]:
    log = group.summary
    behind = f" from byte {log.offset}" if log.gap is not None else ""
    yield paint.bold(f"{printable(log.name)}{behind}")
    yield headline(log)
    if len(group.logs) > 1:
        yield from _members(group.logs)
    yield ""
    yield from _times(log, paint)
    yield from _numbers(log.totals)
    yield from _unlogged_commits(log.totals)
    yield from _waits(log.totals)
    conflicts = by_line(log.conflicts)
    most = MOST_ENTRIES if report.most_entries is None else report.most_entries
    for conflict in conflicts[:most]:
        yield ""
        yield from _entry(conflict, log, report.sources, paint)
    yield from _left_out(conflicts[most:], log)
    if not conflicts:
        yield ""
        yield "No transaction was in conflict with another one."


def _members(logs: Sequence[StmLog]) -> Iterator[str]:
    width = max(len(printable(log.name)) for log in logs)
    for log in logs:
        yield (
            f"  {printable(log.name):{width}}  {log.records:>9} records, "
            f"{seconds(log.span_ns):>9}, {log.totals.commits} commits, {log.totals.aborts} aborts"
        )


def _times(log: StmLog, paint: Paint) -> Iterator[str]:
    totals = log.totals
    yield f"{'Total real time:':21}{seconds(totals.total_ns):>10}"
    if log.semantics == "S0":
        yield _time("Time in transactions:", totals.cpu_ns, totals, "with their pauses")
        return
    inside = [
        (totals.committed_ns, "committed"),
        (totals.aborted_ns, "aborted"),
        (totals.paused_ns, "paused"),
        (totals.detached_ns, "detached: outside, with a transaction left open"),
        (totals.unfinished_ns, "without an end in the log"),
    ]
    label = "Time in transactions:"
    for time_ns, words in (*inside, (sum(time_ns for time_ns, _ in inside), "TOTAL")):
        line = _time(label, time_ns, totals, words)
        yield paint.bold(line) if words == "TOTAL" else line
        label = ""
    yield _time("           including", totals.minor_gc_ns, totals, "minor GC collections")
    yield _time("                 and", totals.major_gc_ns, totals, "major GC collections")
    yield _time("Outside of them:", totals.paused_outside_ns, totals, "waiting, mostly to begin")


def _time(label: str, time_ns: int, totals: LogTotals, words: str) -> str:
    share = old_percent(time_ns, totals.total_ns)
    return f"{label:21}{seconds(time_ns):>10} ({share}) {words}"


def _numbers(totals: LogTotals) -> Iterator[str]:
    number = totals.commits + totals.aborts
    if not number:
        return
    yield (
        f"Total number of transactions:{number:7d} "
        f"committed: {old_percent(totals.commits, number)} "
        f"aborted: {old_percent(totals.aborts, number)}"
    )
    if totals.total_ns:
        per_s = number * NS_PER_S / totals.total_ns
        yield f"{'per second of real time:':>29}{per_s:7.0f}"
    if totals.unexplained:
        yield (
            f"Aborts without a conflict in the log: {totals.unexplained}, "
            f"{seconds(totals.unexplained_ns)} lost."
        )


def _unlogged_commits(totals: LogTotals) -> Iterator[str]:
    if totals.unlogged_commits:
        yield (
            f"Committed without a record in the log: {totals.unlogged_commits}, "
            f"{seconds(totals.unlogged_commit_ns)} of the time without an end."
        )


def _waits(totals: LogTotals) -> Iterator[str]:
    if totals.waits:
        yield "Waits, also of transactions without an end:"
    for kind, (time_ns, number) in sorted(totals.waits.items(), key=lambda item: -item[1][0]):
        yield f"{seconds(time_ns):>31} ({number}x {kind})"


def _entry(
    conflict: Conflict, log: StmLog, sources: Mapping[tuple[str, int], str], paint: Paint
) -> Iterator[str]:
    yield paint.bold(
        f"{seconds(conflict.lost_ns)} lost in aborts, {seconds(conflict.paused_ns)} paused "
        f"({conflict.count}x {conflict.kind})"
    )
    if conflict.is_rest:
        yield "  (all places that there was no room to tell apart)"
    else:
        for marker in conflict.markers or ("",):
            yield from _place(marker, sources, paint)
    counts = cells_of(conflict.over_time, log.first_ns, log.span_ns, _CELLS)
    yield paint.dim(f"time line: |{shaded(counts)}|")


def _place(marker: str, sources: Mapping[tuple[str, int], str], paint: Paint) -> Iterator[str]:
    yield f"  {printable(describe(marker))}"
    position = position_of(marker)
    source = position and sources.get((position.file, position.line))
    if source:
        yield paint.dim(f"    {source}")


def _left_out(rest: Sequence[Conflict], log: StmLog) -> Iterator[str]:
    if not rest:
        return
    lost_ns = sum(each.lost_ns for each in rest)
    paused_ns = sum(each.paused_ns for each in rest)
    entries = counted(len(rest), "more entry", "more entries")
    all_of = len(by_line(log.conflicts))
    yield ""
    yield (
        f"{entries} with {seconds(lost_ns)} lost and {seconds(paused_ns)} paused left out; "
        f"-n {all_of} shows all."
    )


def _notes(report: StmReport) -> Iterator[str]:
    kinds = dict.fromkeys(
        (each.kind, log.layout.partition(",")[0])
        for group in report.groups
        for log in (group.summary,)
        for each in log.conflicts
    )
    for kind, layout in kinds:
        if meaning := meaning_of(kind, layout):
            yield f"{kind}: {meaning}."
    if report.sources:
        yield (
            "Source lines were looked up now, by name: the file may have changed, or be another "
            "one of that name."
        )
    if any(log.is_rest for log in _conflicts(report.groups)):
        yield "More places collided than are told apart; the rest is added up by kind."


def _conflicts(groups: Iterable[LogGroup]) -> Iterator[Conflict]:
    for group in groups:
        yield from group.summary.conflicts
