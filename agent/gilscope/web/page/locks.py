"""The part of the landing page about locks that threads of live processes wait for."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.locks import LockObservation, LockTotals
from gilscope.naming.lock_words import short_words
from gilscope.naming.places import SiteNames
from gilscope.reports.html.markup import joined, tag, text
from gilscope.series.locks.costliest import places_of
from gilscope.series.recent import Curve
from gilscope.text.units import percent, seconds
from gilscope.web.page.sparkline import lost_cell
from gilscope.web.page.table import table

__all__ = ["locks_section"]

_HEADINGS = (
    ("process", ""),
    ("pid", "n"),
    ("Python", ""),
    ("state", ""),
    ("observed", "n"),
    ("overhead", "n"),
    ("lost lately", "n c"),
    ("total lost", "n"),
    ("total waits", "n"),
    ("idle", "n"),
    ("what is waited for, and where", ""),
)
_MOST_PLACES = 3

_CAPTION = (
    "Lost lately: time that all threads have waited for locks, in the last ten seconds or so by "
    "the time that passed, and its curve over five minutes. All other figures: since the process "
    "is traced. Observed: the share of the time that windows have covered, as the overhead budget "
    "allows; waits outside of them are in no figure, and none is multiplied up. Idle is time in "
    "which threads had nothing to do, and no contention."
)


def locks_section(
    observations: Sequence[LockObservation], curves: Mapping[int, Curve]
) -> Iterator[Markup]:
    """Yield the heading and the table as HTML; nothing where no locks are traced."""
    traced = [each for each in observations if each.totals is not None]
    if not traced:
        return
    yield Markup("<h2>Locks that threads wait for</h2>")
    rows = [tuple(_cells(each, curves.get(each.process.pid))) for each in traced]
    yield from table("locks", _HEADINGS, rows, _CAPTION)


def _cells(observation: LockObservation, curve: Curve | None) -> Iterator[str]:
    process, totals = observation.process, observation.totals
    assert totals is not None  # noqa: S101 - see above
    yield text(process.name)
    yield str(process.pid)
    yield text(process.python)
    if observation.invalid:
        yield tag("span", "not reported: ", text(observation.invalid), class_="bad")
        return
    yield Markup('<span class="quiet">ended</span>') if observation.ended else "traced"
    passed_ns = max(1, totals.at_ns - observation.since_ns)
    yield percent(min(1.0, observation.observed_ns / passed_ns))
    yield "" if observation.cost is None else percent(observation.cost.recent_ratio)
    yield lost_cell(curve)
    yield seconds(totals.contended_ns)
    waits = (wait for thread in totals.threads for wait in thread.waits)
    yield str(sum(wait.waits for wait in waits if wait.kind.is_contention))
    yield seconds(totals.idle_ns)
    yield joined(_places(totals), Markup("<br>"))


def _places(totals: LockTotals) -> Iterator[Markup]:
    """Yield the places that have lost the most."""
    names = SiteNames()
    for place in places_of(totals)[:_MOST_PLACES]:
        words = f"{seconds(place.wait_ns)} {short_words(place.waits[0])}: "
        words += names.innermost(place.stack)
        for end in place.other_ends():
            words += f", {end.in_short} {names.innermost(end.stack)}"
        yield text(words)
