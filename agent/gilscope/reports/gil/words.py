"""What reports call the kinds of waits, and what was not counted in full."""

from gilscope.model.gil import GilObservation, Process, Recording
from gilscope.model.kinds import Kind
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, short_duration
from gilscope.verdict.base_rate import BaseRate
from gilscope.verdict.estimates import about

__all__ = [
    "KIND_NAMES",
    "LOST_WORDS",
    "base_words",
    "kind_words",
    "lost_words",
    "process_words",
    "unknown_base",
]

KIND_NAMES = {
    Kind.CONVOY: "convoy",
    Kind.BLOCKING_CALL: "blocking call",
    Kind.PREEMPTION: "preemption",
    Kind.UNKNOWN: "unknown",
}
"""Short names, in the order in which they are told."""

_KIND_WORDS = {
    Kind.CONVOY: "came back from a blocking call and queued for %s or longer",
    Kind.BLOCKING_CALL: "came back from a blocking call and waited for less than that",
    Kind.PREEMPTION: "was preempted by another thread",
    Kind.UNKNOWN: "waited for an unknown cause",
}

LOST_WORDS = {
    "read_fault": ("event", "lost because memory could not be read"),
    "table_full": ("event", "lost because a table was full"),
    "quota": ("event", "lost because the process had used up its share of a table"),
    "began_unseen": ("wait", "begun before the recording, counted without the first part"),
    "abandoned": ("wait", "cut short by the end of the thread, counted up to there"),
    "notice": ("notice", "lost because a queue was full"),
    "lock_unknown": ("yield or hold", "lost because the lock was not known yet"),
    "thread_reused": ("dead thread", "lost because the number was used again"),
    "stack_torn": ("stack", "not known because of a change while it was read"),
    "stack_unknown": ("stack", "not known because the thread was not known"),
    "stack_unsent": ("stack", "that came later because a queue was full"),
    "edge": ("wait", "without its two ends because a table was full"),
    "trace": ("wait", "of which the request was not noted because there were too many"),
    "unfollowed": ("wait", "given up when one had lasted ten seconds, counted up to there"),
    "window": ("window", "of waits missed because gilscope could not run, or put no probes in"),
    "span": ("wait or hold", "missing from the timeline"),
    "invalid_holder": ("hold", "of which the kernel left out the beginning or the end"),
    "probes_gone": (
        "time",
        "that all figures were dropped because the probes had gone from the code",
    ),
    "return_unknown": (
        "wait",
        "lost before the libc method had learned where the call returns",
    ),
}
"""By the reasons of `ProcessTotals.lost_events`: what is counted, and why it was lost."""


_MANY = {"yield or hold": "yields or holds", "wait or hold": "waits or holds"}


def kind_words(observation: GilObservation) -> dict[Kind, str]:
    """Return what a waiter of each kind did, in the order in which they are told.

    Some locks are never requested: what stands for the switch interval there has no name, only a
    time.
    """
    interval = "a switch interval"
    if not observation.process.asks_holder:
        longest_ns = max((gil.interval_ns for gil in observation.totals.gils), default=0)
        interval = short_duration(longest_ns)
    return {
        kind: words % interval if kind is Kind.CONVOY else words
        for kind, words in _KIND_WORDS.items()
    }


def lost_words(reason: str, count: int) -> str:
    """Return what *count* events are that were lost for *reason*: ``2 waits begun before …``."""
    if reason not in LOST_WORDS:
        return f"{count} {reason}"
    one, why = LOST_WORDS[reason]
    return f"{counted(count, one, _MANY.get(one, ''))} {why}"


def unknown_base(process: Process) -> str:
    """Return that it is not known out of how many acquires the waits were, and why."""
    why = "that takes full mode" if process.shows_holds else "nothing shows the holds of this lock"
    return f"How often the GIL was acquired without a wait is not known: {why}."


def base_words(base: BaseRate) -> str:
    """Return out of how many acquires the waits were: ``0.31 % of the 75000 acquires``."""
    mark = about(is_estimate=base.is_estimate)
    return f"{mark}{percent(base.share)} of {mark or 'the '}{counted(base.acquires, 'acquire')}"


def process_words(recording: Recording) -> str:
    """Return which process *recording* is of: ``app.py, pid 4711``."""
    process = recording.observation.process
    return f"{printable(process.name)}, pid {process.pid}"
