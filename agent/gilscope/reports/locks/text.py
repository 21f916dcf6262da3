"""The report on the locks of a live process that a person reads."""

from collections.abc import Iterator, Sequence

from gilscope.model.locks import LockObservation, LockRecording, LockThread, LockTotals
from gilscope.naming.lock_words import (
    CAUSE_WORDS,
    limits_of,
    lost_words,
    stops_words,
    what_words,
)
from gilscope.reports.coverage import coverage_words
from gilscope.reports.gil.text.holds import cost_words
from gilscope.reports.gil.text.stack import stack_lines
from gilscope.series.locks.costliest import places_of
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration

__all__ = ["render"]

_MOST_PLACES = 20
_MOST_THREADS = 20
_ON_A_SCREEN = 3


def render(recording: LockRecording, *, colour: bool = False, whole: bool = True) -> str:
    """Return the report, or what of it fits a screen; *colour* adds terminal colours."""
    lines = list(_lines(recording, Paint(on=colour), whole=whole))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(recording: LockRecording, paint: Paint, *, whole: bool) -> Iterator[str]:
    observation = recording.observation
    process, totals = observation.process, observation.totals
    yield paint.bold(
        f"Locks of {printable(process.name)}, pid {process.pid}, CPython {process.python}"
    )
    if totals is None:
        yield paint.red(f"They were not traced: {observation.invalid}.")
        return
    end = ", until the process ended" if observation.ended and not observation.invalid else ""
    yield f"{seconds(recording.duration_ns)}{end}."
    if observation.invalid:
        yield paint.red(f"It was not seen to the end: {observation.invalid}.")
    yield from _coverage(observation, totals)
    yield ""
    yield from _verdict(totals, observation.observed_ns, paint)
    yield from _places(recording, totals, paint, whole=whole)
    yield from _stops(recording, totals, paint, whole=whole)
    yield from _threads(totals.threads, paint, whole=whole)
    yield ""
    if whole:
        yield from limits_of(process)
    yield from cost_words(observation.cost, recording.duration_ns)
    if not totals.lost_events:
        yield "No wait was lost."
        return
    for reason, count in totals.lost_events.items():
        yield f"Not counted in full: {lost_words(reason, count)}."


def _coverage(observation: LockObservation, totals: LockTotals) -> Iterator[str]:
    passed_ns = totals.at_ns - observation.since_ns
    words = coverage_words(observation.observed_ns, passed_ns, is_whole=observation.is_whole)
    for each in words:
        yield each
        yield "A wait counts that begins and ends in one window: of long ones the fewer are seen."


def _verdict(totals: LockTotals, observed_ns: int, paint: Paint) -> Iterator[str]:
    lost_ns = totals.contended_ns
    if not lost_ns:
        yield paint.bold("No thread waited for a lock that another one had.")
    else:
        worst = totals.threads[0]
        share = percent(worst.contended_ns / max(1, observed_ns))
        yield paint.bold(f"{seconds(lost_ns)} lost waiting for locks") + (
            f", {share} of the time of {printable(worst.name)} (thread {worst.tid})."
        )
    if totals.idle_ns:
        yield (
            f"Besides, threads were idle for {seconds(totals.idle_ns)}: they waited for something "
            "to do, which is no contention."
        )
    yield from stops_words(totals, observed_ns)


def _stops(
    recording: LockRecording, totals: LockTotals, paint: Paint, *, whole: bool
) -> Iterator[str]:
    shown = totals.stops[: _MOST_PLACES if whole else _ON_A_SCREEN]
    if not shown:
        return
    yield ""
    yield paint.bold("Stops of the world, and where they were asked for")
    for stops in shown:
        yield (
            f"{seconds(stops.ns):>10} stopped ({stops.stops}x for {CAUSE_WORDS[stops.cause]}; "
            f"longest {short_duration(stops.longest_ns)}, "
            f"{percent(stops.stopping_share)} until all had stopped)"
        )
        for line in stack_lines(stops.stack, recording, paint):
            yield f"           {line}"
    rest = totals.stops[len(shown) :]
    if rest:
        rest_ns = sum(stops.ns for stops in rest)
        yield f"{seconds(rest_ns):>10} stopped at {counted(len(rest), 'other place')}"


def _places(
    recording: LockRecording, totals: LockTotals, paint: Paint, *, whole: bool
) -> Iterator[str]:
    ranked = places_of(totals)
    shown = ranked[: _MOST_PLACES if whole else _ON_A_SCREEN]
    if not shown:
        return
    yield ""
    yield paint.bold("What was waited for, and where")
    for place in shown:
        spun = (
            f", {percent(1 - place.slept_ns / place.wait_ns)} of it spinning"
            if place.wait_ns > place.slept_ns
            else ""
        )
        yield (
            f"{seconds(place.wait_ns):>10} lost ({place.number}x {what_words(place.waits[0])}; "
            f"longest {short_duration(place.longest_ns)}{spun})"
        )
        stacks = [each.stack for each in place.waits]
        for line in stack_lines(place.stack, recording, paint, stacks):
            yield f"           {line}"
        for end in place.other_ends():
            of_it = "" if end.is_of_all else f", {percent(end.share)} of it"
            yield f"         {end.words}{of_it}"
            yield from (f"           {line}" for line in stack_lines(end.stack, recording, paint))
    rest = ranked[len(shown) :]
    if rest:
        rest_ns = sum(place.wait_ns for place in rest)
        yield f"{seconds(rest_ns):>10} lost at {counted(len(rest), 'other place')}"


def _threads(threads: Sequence[LockThread], paint: Paint, *, whole: bool) -> Iterator[str]:
    told = [thread for thread in threads if whole or thread.contended_ns]
    shown = told[: _MOST_THREADS if whole else _ON_A_SCREEN]
    if not shown:
        return
    yield ""
    yield paint.bold("By thread")
    for thread in shown:
        waits = sum(wait.waits for wait in thread.waits if wait.kind.is_contention)
        yield (
            f"{seconds(thread.contended_ns):>10} lost ({waits}x), idle {seconds(thread.idle_ns)}: "
            f"{printable(thread.name)}, thread {thread.tid}"
        )
    rest = told[len(shown) :]
    if rest:
        rest_ns = sum(thread.contended_ns for thread in rest)
        yield f"{seconds(rest_ns):>10} lost by {counted(len(rest), 'other')}"
