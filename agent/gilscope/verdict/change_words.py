"""Says what a change of the program would bring, each with what it takes for granted."""

from collections.abc import Iterable, Iterator

from gilscope.model.application import Application
from gilscope.model.gil import GilObservation, Recording
from gilscope.naming.hold_states import TellingState, advice
from gilscope.naming.places import SiteNames
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, counted, percent, seconds, short_duration
from gilscope.values import dataclass
from gilscope.verdict.changes import FewerThreads, OtherProcess, ShorterInterval, changes_of
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["ChangeWords", "advice_lines", "assumption", "change_words", "changes_so_far"]


_CLOSE = 1.2
"""What is no farther apart is told as one figure."""


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change in words."""

    what: str
    gain: str
    assumption: str
    """What is taken for granted, beginning with ``if``."""


_ASSUMPTIONS = {
    ShorterInterval: (
        "if threads wait for as many turns of others as now, and holders drop the GIL as soon"
    ),
    OtherProcess: "if a CPU is free for it, and little has to go back and forth",
    FewerThreads: "if they need nothing but the GIL and a CPU",
}


def advice_lines(recording: Recording, states: Iterable[TellingState]) -> tuple[str, ...]:
    """Return what helps where the GIL is kept in *states*, with what that would bring, in lines.

    That is short enough for the first screen.
    """
    whose = recording.observation.process
    lines = advice(states, whose.runtime, asks_holder=whose.asks_holder)
    if not whose.asks_holder or lines != advice(()):
        return lines
    changes = changes_of(recording)
    process, interval = changes.other_process, changes.shorter_interval
    first, second = lines
    if process is not None and process.others_ns:
        gain = f"{_mark(recording)}{seconds(process.others_ns)}"
        first = f"{first.removesuffix(';')}: at most {gain} less;"
    if interval is not None:
        second = (
            f"{_set(interval.shorter_ns)}: ≈ {_expected(interval)} a wait, with "
            f"≈ {interval.switches:.2g} times as many switches."
        )
    elif changes.fewer_threads is not None:
        fewer = changes.fewer_threads
        second = (
            f"{counted(fewer.enough, 'thread')} of {printable(fewer.role)}, not {fewer.threads}: "
            "as much gets done."
        )
    return first, second


def change_words(recording: Recording) -> Iterator[ChangeWords]:
    """Yield what each change is, and would bring; nothing of those that cannot be told."""
    changes = changes_of(recording)
    process, interval = changes.other_process, changes.shorter_interval
    if process is not None:
        place = printable(SiteNames().owner(process.frame, process.costliest))
        gain = _process_gain(process, _mark(recording))
        yield ChangeWords(f"{place} in another process", gain, assumption(process))
    if interval is not None:
        what = f"{_set(interval.shorter_ns)} instead of {_as_seconds(interval.interval_ns)}"
        yield ChangeWords(what, _interval_gain(interval), assumption(interval))
    if changes.fewer_threads is not None:
        fewer = changes.fewer_threads
        what = f"{counted(fewer.enough, 'thread')} of {printable(fewer.role)}, not {fewer.threads}"
        gain = f"as much gets done, for {fewer.waiting:.2f} of them wait for their turn now"
        yield ChangeWords(what, gain, assumption(fewer))


def changes_so_far(seen: GilObservation, application: Application) -> Iterator[ChangeWords]:
    """Yield the same of all the time for which a process is traced; *seen* is valid."""
    duration_ns = max(0, seen.totals.at_ns - seen.since_ns)
    return change_words(Recording(seen, "", duration_ns, application))


def assumption(change: ShorterInterval | OtherProcess | FewerThreads) -> str:
    """Return under which condition *change* brings what it is said to."""
    return _ASSUMPTIONS[type(change)]


def _process_gain(process: OtherProcess, mark: str) -> str:
    parts = []
    if process.others_ns:
        share = percent(process.others_ns / max(1, process.lost_ns))
        parts.append(f"{mark}{seconds(process.others_ns)} less is lost ({mark}{share})")
    if process.own_ns:
        parts.append(f"{mark}{seconds(process.own_ns)} less with one for each of its threads")
    return f"at most {', and '.join(parts)}"


def _interval_gain(interval: ShorterInterval) -> str:
    return (
        f"≈ {_expected(interval)} for each convoy wait, not "
        f"{short_duration(interval.wait_ns)}; ≈ {interval.switches:.2g} times the switches"
    )


def _expected(interval: ShorterInterval) -> str:
    """Return how long a wait would take: from one to the other, where these are far apart."""
    if interval.most_ns <= _CLOSE * interval.least_ns:
        return short_duration(interval.expected_ns)
    return f"{short_duration(interval.least_ns)} to {short_duration(interval.most_ns)}"


def _set(ns: int) -> str:
    return f"sys.setswitchinterval({_as_seconds(ns)})"


def _mark(recording: Recording) -> str:
    return about(is_estimate=are_shared_out(recording.observation.totals))


def _as_seconds(ns: int) -> str:
    return f"{ns / NS_PER_S:g}"
