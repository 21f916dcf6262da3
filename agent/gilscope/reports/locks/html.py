"""The locks of live processes as HTML: a page of its own, or parts of one about GILs."""

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

import gilscope
from gilscope.model.locks import (
    LockObservation,
    LockRecording,
    LockThread,
    LockTotals,
    WorldStops,
)
from gilscope.model.stack import Stack
from gilscope.naming.lock_words import (
    CAUSE_WORDS,
    limits_of,
    lost_words,
    short_words,
    stops_words,
)
from gilscope.naming.places import SiteNames
from gilscope.reports.coverage import coverage_words
from gilscope.reports.html.markup import (
    clean,
    duration,
    figure,
    joined,
    large_figure,
    numbered,
    tag,
    text,
    time_lost,
)
from gilscope.reports.html.pages import page
from gilscope.reports.locks.matrix import matrix
from gilscope.reports.locks.moment import moment_section
from gilscope.series.locks.costliest import LockPlace, OtherEnd, places_of
from gilscope.text.units import counted, percent

__all__ = ["parts", "render"]

_MOST_ROWS = 50
"""Of a table."""
_OF_WORDS = {"lock", "waiting place", "held by", "released by", "thread", "cause", "asked for at"}
"""Columns that are no figures."""


def render(*recordings: LockRecording) -> Markup:
    """Return the page; it loads nothing, and runs no script."""
    process = recordings[0].observation.process
    return page(f"Locks: {process.name}, pid {process.pid}", parts(recordings))


def parts(recordings: Sequence[LockRecording]) -> Iterator[Markup]:
    """Yield a part for each of *recordings*, the one that has lost most first."""
    ranked = sorted(recordings, key=lambda each: -_lost_ns(each.observation.totals))
    for number, recording in enumerate(ranked, 1):
        for line in (*_heading(recording), *_part(recording)):
            yield line if number == 1 else numbered(line, number)


def _heading(recording: LockRecording) -> Iterator[Markup]:
    observation = recording.observation
    process = observation.process
    end = ", until the process ended" if observation.ended and not observation.invalid else ""
    yield Markup('<header><p class="tool">gilscope {}: locks</p>').format(
        text(gilscope.__version__)
    )
    yield tag("h1", text(process.name))
    yield Markup("<p>pid {}, CPython {}; {}{}.</p></header>").format(
        process.pid, text(process.python), time_lost(recording.duration_ns), end
    )


def _part(recording: LockRecording) -> Iterator[Markup]:
    observation, totals = recording.observation, recording.observation.totals
    yield Markup('<article class="locks">')
    if totals is None:
        yield tag("p", text(f"They were not traced: {observation.invalid}."), class_="bad")
        yield Markup("</article>")
        return
    if observation.invalid:
        yield tag("p", text(f"It was not seen to the end: {observation.invalid}."), class_="bad")
    yield Markup('<section id="lock-summary" class="summary"><h2>Summary</h2>')
    yield tag("p", _answer(totals, observation.observed_ns), class_="lead")
    yield Markup('<dl class="figures">')
    yield from _figures(observation, totals)
    yield Markup('</dl><ul class="notes">')
    yield from (tag("li", text(note)) for note in _notes(observation, totals))
    yield Markup("</ul></section>")
    names = SiteNames()
    yield from moment_section(recording, names)
    places = places_of(totals)
    yield from _places(places, names)
    yield from matrix(places, names)
    yield from _stops(totals.stops, names)
    yield from _threads(totals.threads)
    yield Markup("</article>")


def _answer(totals: LockTotals, observed_ns: int) -> str:
    if not totals.contended_ns:
        return "No thread waited for a lock that another one had."
    worst = totals.threads[0]
    share = percent(worst.contended_ns / max(1, observed_ns))
    return (
        f"{time_lost(totals.contended_ns)} lost waiting for locks, {share} of the time of "
        f"{clean(worst.name)} (thread {worst.tid})."
    )


def _figures(observation: LockObservation, totals: LockTotals) -> Iterator[Markup]:
    waits = [wait for thread in totals.threads for wait in thread.waits if wait.kind.is_contention]
    number = sum(wait.waits for wait in waits)
    yield large_figure(
        time_lost(totals.contended_ns), "lost waiting", f"in {counted(number, 'wait')}"
    )
    longest_ns = max((wait.longest_ns for wait in waits), default=0)
    yield large_figure(duration(longest_ns), "longest wait", "")
    yield large_figure(time_lost(totals.idle_ns), "idle", "which is no contention")
    passed_ns = max(1, totals.at_ns - observation.since_ns)
    covered = percent(min(1.0, observation.observed_ns / passed_ns))
    yield large_figure(covered, "of the time observed", time_lost(observation.observed_ns))
    if observation.cost is not None:
        yield large_figure(
            percent(observation.cost.recent_ratio), "overhead", "of its own CPU time, estimated"
        )


def _notes(observation: LockObservation, totals: LockTotals) -> Iterator[str]:
    passed_ns = totals.at_ns - observation.since_ns
    yield from coverage_words(observation.observed_ns, passed_ns, is_whole=observation.is_whole)
    yield from stops_words(totals, observation.observed_ns)
    yield from limits_of(observation.process)
    lost = totals.lost_events
    yield from (f"Not counted in full: {lost_words(*each)}." for each in lost.items())
    if not lost:
        yield "No wait was lost."


def _places(places: Sequence[LockPlace], names: SiteNames) -> Iterator[Markup]:
    rows = (_place_row(place, names) for place in places)
    figures = ("lost", "waits", "longest", "spinning")
    heads = ("lock", *figures, "waiting place", "held by", "released by")
    yield from _table("lock-places", "What was waited for, and where", heads, rows)


def _place_row(place: LockPlace, names: SiteNames) -> Sequence[Markup]:
    spun = max(0.0, 1 - place.slept_ns / max(1, place.wait_ns))
    return (
        text(short_words(place.waits[0])),
        figure(place.wait_ns),
        _number(place.number),
        tag("td", duration(place.longest_ns), class_="n", data_v=place.longest_ns),
        tag("td", percent(spun), class_="n", data_v=round(1000 * spun)),
        tag("td", _stack(place.stack, names)),
        *(_end(end, names) for end in (place.held(), place.released())),
    )


def _end(end: OtherEnd | None, names: SiteNames) -> Markup:
    if end is None:
        return tag("td")
    return tag("td", end.part, _stack(end.stack, names))


def _stops(stops: Sequence[WorldStops], names: SiteNames) -> Iterator[Markup]:
    rows = (
        (
            text(CAUSE_WORDS[each.cause]),
            figure(each.ns),
            _number(each.stops),
            tag("td", duration(each.longest_ns), class_="n", data_v=each.longest_ns),
            figure(each.stopping_ns),
            tag("td", _stack(each.stack, names)),
        )
        for each in stops
    )
    heads = ("cause", "took", "stops", "longest", "until all had stopped", "asked for at")
    yield from _table("world-stops", "Stops of the world", heads, rows)


def _stack(stack: Stack, names: SiteNames) -> Markup:
    """Return where a thread stood; the calls that led there are a click away."""
    innermost = tag("code", text(names.innermost(stack)))
    callers = stack.frames[1:]
    if not callers:
        return innermost
    lines = [tag("li", tag("code", text(names.site(frame)))) for frame in callers]
    return Markup("<details><summary>{}</summary><ol>{}</ol></details>").format(
        innermost, joined(lines)
    )


def _threads(threads: Sequence[LockThread]) -> Iterator[Markup]:
    rows = (
        (
            text(thread.name),
            _number(thread.tid),
            figure(thread.contended_ns),
            _number(sum(wait.waits for wait in thread.waits if wait.kind.is_contention)),
            figure(thread.idle_ns),
        )
        for thread in threads
    )
    yield from _table("lock-threads", "By thread", ("thread", "tid", "lost", "waits", "idle"), rows)


def _table(
    name: str, heading: str, heads: Sequence[str], rows: Iterable[Sequence[Markup]]
) -> Iterator[Markup]:
    every = list(rows)
    if not every:
        return
    # It may be wider than the page; then it scrolls by itself, with the keyboard as well.
    yield Markup(
        '<section id="{name}"><h2>{heading}</h2>'
        '<div class="scroll" tabindex="0" role="region" aria-label="{heading}">'
        "<table><thead><tr>"
    ).format(name=name, heading=heading)
    yield from _heads(heads)
    yield Markup("</tr></thead><tbody>")
    for label, *cells in every[:_MOST_ROWS]:
        yield tag("tr", tag("th", label, scope="row"), *cells)
    yield Markup("</tbody></table></div>")
    rest = len(every) - _MOST_ROWS
    if rest > 0:
        yield tag("p", f"and {rest} more, which the JSON report has", class_="quiet")
    yield Markup("</section>")


def _heads(heads: Sequence[str]) -> Iterator[Markup]:
    for each in heads:
        if each in _OF_WORDS:
            yield tag("th", each, scope="col")
        else:
            yield tag("th", each, scope="col", class_="n")


def _number(count: int) -> Markup:
    return tag("td", count, class_="n", data_v=count)


def _lost_ns(totals: LockTotals | None) -> int:
    return 0 if totals is None else totals.contended_ns
