"""The part of the landing page that says whose code keeps the GIL, and whom it keeps waiting."""

from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation, Process
from gilscope.naming.hold_states import why_words
from gilscope.reports.html.markup import tag, text
from gilscope.series.lately import Lately
from gilscope.text.units import NS_PER_S, percent, short_duration
from gilscope.verdict.change_words import changes_so_far
from gilscope.verdict.estimates import about, are_shared_out
from gilscope.web.page.table import table

__all__ = ["MOST_PAIRS", "blame_section"]

MOST_PAIRS = 5
_MOST_PROCESSES = 20

_S_PER_MINUTE = 60
_UNTIL_MINUTES = 120
_UNTIL_HOURS = 120 * _S_PER_MINUTE

_PLACE_COLUMNS = (
    ("lost per second", "n t"),
    ("of the loss", "n t"),
    ("code that keeps the GIL", "s"),
    ("in", "s"),
    ("why", "w"),
)
_HELD_COLUMNS = (
    ("held", "n t"),
    ("give or take", "n t"),
    ("code that holds the GIL", "s"),
    ("in", "s"),
    ("doing", "w"),
)
_PAIR_COLUMNS = (
    ("lost per second", "n t"),
    ("of the loss", "n t"),
    ("kind", "k"),
    ("waiter", "s"),
    ("held by", "s"),
)
_HOLDER_COLUMNS = (
    ("drop latency", "n t"),
    ("longest", "n t"),
    ("times", "n t"),
    ("unanswered for", "n t"),
    ("holder", "s"),
)


def blame_section(
    observations: Iterable[GilObservation],
    lately: Mapping[int, Lately],
    application: Application = EVERYBODYS,
) -> Iterator[Markup]:
    """Yield the section as lines of HTML, the process that has lost most lately first."""
    known = [
        (
            seen,
            lately[seen.process.pid],
            about(is_estimate=are_shared_out(seen.totals)),
        )
        for seen in observations
        if seen.process.pid in lately and not seen.ended
    ]
    told = [each for each in known if each[1].pairs or each[1].slow_holders or each[1].held]
    told.sort(key=lambda each: -_per_second(each[1].lost_ns, each[1]))
    if not told:
        return
    yield Markup("<h2>Whose code keeps the GIL</h2>")
    for seen, lost, mark in told[:_MOST_PROCESSES]:
        yield from _process(seen.process, lost, mark)
        yield from _changes(seen, application)
    left = len(told) - _MOST_PROCESSES
    if left > 0:
        yield tag("p", f"{left} more that have lost less are left out here.", class_="quiet")


def _process(process: Process, lost: Lately, mark: str) -> Iterator[Markup]:
    yield tag("h3", text(process.name), " ", tag("span", process.pid, class_="quiet"))
    yield Markup(
        '<p><a href="report?pid={}">Its last 5 minutes</a>, with flame graphs and source lines.</p>'
    ).format(process.pid)
    if lost.pairs:
        rate = short_duration(_per_second(lost.lost_ns, lost))
        caption = (
            f"Its threads have lost {rate} per second {_period(lost)}. Whose code keeps the GIL:"
        )
        yield from table("pairs", _PLACE_COLUMNS, _holders(lost, mark), caption, is_named=False)
        caption = "Who keeps whom waiting:"
        yield from table("pairs", _PAIR_COLUMNS, _pairs(lost, mark), caption, is_named=False)
    else:
        yield tag("p", f"Its threads have lost nothing {_period(lost)}.", class_="quiet")
    if lost.held:
        caption = "Who holds the GIL, whether anybody waits or not, sampled since it is traced:"
        yield from table("pairs", _HELD_COLUMNS, _held(lost), caption, is_named=False)
    if lost.slow_holders:
        holders = (
            (
                short_duration(slow.drop_latency.ns),
                short_duration(slow.longest_ns),
                str(slow.drop_latency.count),
                short_duration(slow.in_flight_ns) if slow.in_flight_ns else "",
                text(slow.holder),
            )
            for slow in lost.slow_holders
        )
        caption = "Slow to drop the GIL: over 10 ms when asked, since the process is traced:"
        yield from table("pairs", _HOLDER_COLUMNS, holders, caption, is_named=False)


def _changes(seen: GilObservation, application: Application) -> Iterator[Markup]:
    changes = list(changes_so_far(seen, application))
    if not changes:
        return
    yield Markup("<p>What a change would bring, by all that was seen since it is traced:</p><ul>")
    for change in changes:
        gain = f"{change.what}: {change.gain}, ".replace(" us ", " µs ")
        yield tag("li", text(gain), tag("span", change.assumption, ".", class_="quiet"))
    yield Markup("</ul>")


def _holders(lost: Lately, mark: str) -> Iterator[tuple[str, ...]]:
    for holder in lost.holders:
        why = text(why_words(holder.states))
        yield (*_loss(holder.lost_ns, lost, mark), text(holder.place), text(holder.inner), why)
    left_ns = lost.lost_ns - sum(holder.lost_ns for holder in lost.holders)
    if left_ns > 0:
        yield (*_loss(left_ns, lost, mark), "all other code", "", "")


def _held(lost: Lately) -> Iterator[tuple[str, ...]]:
    for held in lost.held:
        error = f"{max(1, round(100 * held.error))} points"
        doing = text(why_words(held.states))
        yield (f"≈ {percent(held.share)}", error, text(held.place), text(held.inner), doing)


def _pairs(lost: Lately, mark: str) -> Iterator[tuple[str, ...]]:
    for pair in lost.pairs:
        yield (*_loss(pair.lost_ns, lost, mark), pair.kind, text(pair.waiter), text(pair.holder))
    left_ns = lost.lost_ns - sum(pair.lost_ns for pair in lost.pairs)
    if left_ns > 0:
        yield (*_loss(left_ns, lost, mark), "", "all other pairs", "")


def _loss(ns: int, lost: Lately, mark: str) -> tuple[str, str]:
    rate, share = short_duration(_per_second(ns, lost)), percent(ns / max(1, lost.lost_ns))
    return f"{mark}{rate}", f"{mark}{share}"


def _per_second(ns: int, lost: Lately) -> int:
    return ns * NS_PER_S // max(1, lost.period_ns)


def _period(lost: Lately) -> str:
    length = _length(lost.period_ns // NS_PER_S)
    return f"in the {length} since it is traced" if lost.is_all else f"in the last {length}"


def _length(period_s: int) -> str:
    if period_s < _UNTIL_MINUTES:
        return f"{max(1, period_s)} s"
    if period_s < _UNTIL_HOURS:
        return f"{period_s // _S_PER_MINUTE} min"
    return f"{period_s // _S_PER_MINUTE // _S_PER_MINUTE} h"
