"""The part of the landing page about the transactions of live processes."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.transactions import StmObservation, StmTotals
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS
from gilscope.reports.html.markup import joined, tag, text
from gilscope.series.recent import Curve
from gilscope.text.units import percent, seconds
from gilscope.web.page.sparkline import lost_cell
from gilscope.web.page.table import table

__all__ = ["transactions_section"]

_HEADINGS = (
    ("process", ""),
    ("pid", "n"),
    ("library", ""),
    ("state", ""),
    ("observed", "n"),
    ("overhead", "n"),
    ("commits", "n"),
    ("aborts", "n"),
    ("aborted", "n"),
    ("lost lately", "n c"),
    ("lost in aborts", "n"),
    ("paused", "n"),
    ("what holds it up", ""),
)

_MOST_REASONS = 3

_CAPTION = (
    "Lost lately: time that aborted tries had run, in the last ten seconds or so by the time that "
    "passed, and its curve over five minutes. All other figures: since the process is traced. "
    "Observed: the share of the time that windows have covered, as the overhead budget allows; "
    "transactions outside of them are in no figure, and none is multiplied up."
)


def transactions_section(
    observations: Sequence[StmObservation], curves: Mapping[int, Curve]
) -> Iterator[Markup]:
    """Yield the heading and the table as HTML; nothing where there are no such processes."""
    if not observations:
        return
    yield Markup("<h2>Processes with transactions</h2>")
    rows = [tuple(_cells(each, curves.get(each.process.pid))) for each in observations]
    yield from table("transactions", _HEADINGS, rows, _CAPTION)


def _cells(observation: StmObservation, curve: Curve | None) -> Iterator[str]:
    process, totals = observation.process, observation.totals
    yield text(process.name)
    yield str(process.pid)
    yield LIBRARY_WORDS[process.library]
    if observation.invalid:
        yield tag("span", "not reported: ", text(observation.invalid), class_="bad")
        return
    if observation.ended:
        yield Markup('<span class="quiet">ended</span>')
    else:
        yield f"traced {METHOD_WORDS[process.method]}"
    passed_ns = max(1, totals.at_ns - observation.since_ns)
    yield percent(min(1.0, observation.observed_ns / passed_ns))
    yield "" if observation.cost is None else percent(observation.cost.recent_ratio)
    yield str(totals.commits)
    yield "" if totals.aborts is None else str(totals.aborts)
    ends = totals.commits + (totals.aborts or 0)
    yield "" if totals.aborts is None else percent(totals.aborts / max(1, ends))
    yield "" if totals.aborted is None else lost_cell(curve)
    yield "" if totals.aborted is None else seconds(totals.aborted.sum_ns)
    yield "" if totals.waits is None else seconds(sum(each.ns for each in totals.waits.values()))
    yield joined(_held_up_by(totals), Markup("<br>"))


def _held_up_by(totals: StmTotals) -> Iterator[Markup]:
    """Yield the kind of wait with the most time, and the most frequent reasons of inevitability."""
    waits = totals.waits or {}
    kind = max(waits, key=lambda each: waits[each].ns, default="")
    if kind and waits[kind].ns:
        yield text(f"{kind} {seconds(waits[kind].ns)} ({waits[kind].count}x)")
    ranked = sorted(totals.inevitable.items(), key=lambda item: (-item[1], item[0]))
    for reason, count in ranked[:_MOST_REASONS]:
        yield text(f"inevitable {count}x {reason}")
