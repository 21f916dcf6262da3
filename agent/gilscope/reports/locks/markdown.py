"""The locks of a live process as Markdown: what was lost, and the costliest places."""

from collections.abc import Iterator

from gilscope.model.locks import LockObservation, LockRecording, LockTotals, WorldStops
from gilscope.naming.lock_words import (
    CAUSE_WORDS,
    limits_of,
    lost_words,
    short_words,
    stops_words,
)
from gilscope.naming.places import SiteNames
from gilscope.reports.coverage import coverage_words
from gilscope.reports.markdown_table import plain, table
from gilscope.series.locks.costliest import LockPlace, places_of
from gilscope.text.units import percent, seconds, short_duration

__all__ = ["MOST_ROWS", "render"]

MOST_ROWS = 10
"""Of a table."""


def render(recording: LockRecording) -> str:
    """Return the answer to *recording*: what was lost, for which locks, and in which lines."""
    return "\n".join(_lines(recording)) + "\n"


def _lines(recording: LockRecording) -> Iterator[str]:
    observation = recording.observation
    process, totals = observation.process, observation.totals
    whose = f"{process.name}, pid {process.pid}, CPython {process.python}"
    if totals is None:
        yield "### Locks: they were not traced"
        yield ""
        yield plain(f"{whose}: {observation.invalid}.")
        return
    yield f"### Locks: {plain(_answer(totals, observation.observed_ns))}"
    yield ""
    idle = f"Besides, threads were idle for {seconds(totals.idle_ns)}." if totals.idle_ns else ""
    yield plain(f"{whose}: {seconds(recording.duration_ns)}. {idle}".rstrip())
    places, names = places_of(totals), SiteNames()
    if places:
        yield ""
        yield from table(
            ("lock, and where it was waited for", "lost", "waits", "longest"),
            [_row(place, names) for place in places[:MOST_ROWS]],
        )
    if totals.stops:
        yield ""
        yield from table(
            ("stop of the world, and where it was asked for", "took", "stops", "longest"),
            [_stops_row(stops, names) for stops in totals.stops[:MOST_ROWS]],
        )
    notes = list(_notes(observation, totals))
    yield ""
    yield from (f"- {plain(note)}" for note in notes)


def _answer(totals: LockTotals, observed_ns: int) -> str:
    if not totals.contended_ns:
        return "no thread waited for a lock that another one had"
    worst = totals.threads[0]
    share = percent(worst.contended_ns / max(1, observed_ns))
    return f"{seconds(totals.contended_ns)} lost waiting, {share} of the time of {worst.name}"


def _row(place: LockPlace, names: SiteNames) -> tuple[str, ...]:
    where = f"{short_words(place.waits[0])}: {names.innermost(place.stack)}"
    for end in place.other_ends():
        where += f", {end.in_short} {names.innermost(end.stack)}"
    return (
        where,
        seconds(place.wait_ns),
        str(place.number),
        short_duration(place.longest_ns),
    )


def _stops_row(stops: WorldStops, names: SiteNames) -> tuple[str, ...]:
    return (
        f"{CAUSE_WORDS[stops.cause]}: {names.innermost(stops.stack)}",
        seconds(stops.ns),
        str(stops.stops),
        short_duration(stops.longest_ns),
    )


def _notes(observation: LockObservation, totals: LockTotals) -> Iterator[str]:
    if observation.invalid:
        yield f"It was not seen to the end: {observation.invalid}."
    yield from stops_words(totals, observation.observed_ns)
    passed_ns = totals.at_ns - observation.since_ns
    yield from coverage_words(observation.observed_ns, passed_ns, is_whole=observation.is_whole)
    yield from limits_of(observation.process)
    if not totals.lost_events:
        yield "No wait was lost."
    for reason, count in totals.lost_events.items():
        yield f"Not counted in full: {lost_words(reason, count)}."
