"""The part of the landing page with a row for each traced process."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.gil import GilObservation, ProcessTotals
from gilscope.reports.html.markup import tag, text
from gilscope.series.recent import Curve
from gilscope.text.units import percent, seconds, short_duration
from gilscope.verdict.estimates import about, is_held_estimated
from gilscope.web.page.sparkline import held_cell, lost_cell
from gilscope.web.page.table import table

__all__ = ["targets_section"]

_COLUMNS = (
    ("process", ""),
    ("pid", "n"),
    ("Python", ""),
    ("state", "s"),
    ("waiting", "n c"),
    ("GIL held", "n c"),
    ("waiting now", "n"),
    ("longest wait now", "n"),
    ("longest hold now", "n"),
    ("total lost", "n"),
    ("total waits", "n"),
    ("windows", "n"),
    ("overhead", "n"),
)

_NOTHING = Markup(
    "None yet. A Python that was chosen is here within a second or so of its start. "
    "<code>gilscope doctor -p PID</code> says whether a process can be traced, and why not."
)

_MEANINGS = {
    "waiting": (
        "Time that threads waited for the GIL in the last ten seconds or so, by the time that "
        "passed: 100 % is one thread that always waits, or two that wait for half of their time. "
        "Waits in flight are included. The curve is of the last five minutes; its full "
        "height is 100 %, or the most that there was."
    ),
    "GIL held": (
        "Share of the same time for which a thread held the GIL. Exact in full mode and inside "
        "windows, estimated elsewhere (≈). Near 100 %, more threads bring no more speed. Where a "
        "process has several GILs they are added up."
    ),
    "waiting now, longest wait now, longest hold now": (
        "Threads that wait at this moment, and for how long so far. Holds are seen while a window "
        "is open."
    ),
    "total lost, total waits": ("Waiting time, and finished waits, since the process is traced."),
    "windows": (
        "Share of that time in which every hold was seen. In contention mode there are none."
    ),
    "overhead": (
        "What tracing costs the process by gilscope's own estimate: of the CPU time that it used "
        "itself in the last minute."
    ),
}


def targets_section(
    observations: Sequence[GilObservation], curves: Mapping[int, Curve]
) -> Iterator[Markup]:
    """Yield the section as lines of HTML, the process that lost most in the last minutes first."""
    yield Markup("<h2>Traced processes</h2>")
    if not observations:
        yield tag("p", _NOTHING)
        return
    ranked = sorted(observations, key=lambda seen: _rank(seen, curves.get(seen.process.pid)))
    rows = [tuple(_cells(seen, curves.get(seen.process.pid))) for seen in ranked]
    yield from table("targets", _COLUMNS, rows)
    yield Markup("<details><summary>What the figures mean</summary><dl>")
    for names, meaning in _MEANINGS.items():
        yield tag("dt", names) + tag("dd", meaning)
    yield Markup("</dl></details>")


def _rank(seen: GilObservation, curve: Curve | None) -> tuple[float, int, int]:
    stretches = () if curve is None else curve.stretches
    lost_ns = sum(each.lost * (each.began_ns - each.ended_ns) for each in stretches)
    return -lost_ns, -_wait_ns(seen), seen.process.pid


def _cells(seen: GilObservation, curve: Curve | None) -> Iterator[str]:
    process = seen.process
    yield text(process.name)
    yield str(process.pid)
    yield text(process.python)
    yield _state(seen)
    if not seen.invalid:
        yield lost_cell(curve)
        yield held_cell(curve, _about_held(seen))
        yield from _figures(seen)


def _about_held(seen: GilObservation) -> str:
    totals = seen.totals
    is_estimate = is_held_estimated(totals.observed_ns, totals.at_ns - seen.since_ns)
    return about(is_estimate=is_estimate)


def _figures(seen: GilObservation) -> Iterator[str]:
    totals = seen.totals
    waiting = [thread.waiting_ns for thread in totals.threads if thread.waiting_ns]
    yield str(len(waiting))
    yield short_duration(max(waiting)) if waiting else ""
    yield _longest_hold(totals)
    yield seconds(_wait_ns(seen))
    yield str(sum(thread.waits for thread in totals.threads))
    traced_ns = max(1, totals.at_ns - seen.since_ns)
    yield "" if totals.observed_ns is None else percent(totals.observed_ns / traced_ns)
    yield "" if totals.cost is None else percent(totals.cost.recent_ratio)


def _longest_hold(totals: ProcessTotals) -> str:
    longest_ns = max((gil.holds.holding_ns for gil in totals.gils if gil.holds), default=0)
    return short_duration(longest_ns) if longest_ns else ""


def _state(seen: GilObservation) -> str:
    if seen.invalid:
        return tag("span", "not reported: ", text(seen.invalid), class_="bad")
    if seen.ended:
        return Markup('<span class="quiet">ended</span>')
    ways = {"sites": "traced at its call sites", "libc": "traced through libc"}
    return ways[seen.process.method]


def _wait_ns(seen: GilObservation) -> int:
    return seen.totals.wait_ns
