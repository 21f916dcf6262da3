"""What reports on locks say in words."""

from collections.abc import Iterator

from gilscope.model.locks import LockKind, LockProcess, LockSpan, LockTotals, LockWait, StopCause
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, counted, percent, short_duration, short_number

__all__ = [
    "CAUSE_WORDS",
    "KIND_WORDS",
    "LOST_WORDS",
    "limits_of",
    "lost_words",
    "short_words",
    "stops_words",
    "what_words",
]

KIND_WORDS = {
    LockKind.OBJECT: "the lock of an object",
    LockKind.LOCK: "a threading.Lock",
    LockKind.RLOCK: "a threading.RLock",
    LockKind.INTERPRETER: "a lock of the interpreter",
    LockKind.C_API: "a lock of the C API",
    LockKind.OTHER: "another lock",
    LockKind.WORLD_STOP: "the end of a stop of the world",
    LockKind.WORLD_STOP_REQUEST: "the other threads to stop",
    LockKind.IDLE: "something to do",
}
"""By kind, what a thread waited for."""

CAUSE_WORDS = {
    StopCause.COLLECTION: "garbage collection",
    StopCause.OTHER: "another cause",
}
"""By cause, what the world was stopped for."""

LOST_WORDS = {
    "read_fault": ("wait", "lost because memory could not be read"),
    "table_full": ("wait", "not counted in full because a table was full"),
    "began_unseen": ("sleep", "begun before the recording, not counted"),
    "span": ("wait", "counted and not drawn, because the ring of the timeline was full"),
    "thread_reused": ("dead thread", "lost because the number was used again"),
    "stack_unknown": (
        "wait",
        "without a place because the thread ran no Python that could be read",
    ),
}
"""By the reasons of `LockTotals.lost_events`: what is counted, and why it was lost."""

_TYPED = (3, 14)
"""From this version on a Lock and an RLock tell what they are in all builds."""


def lost_words(reason: str, count: int) -> str:
    """Return what *count* waits are that were lost for *reason*."""
    one, why = LOST_WORDS.get(reason, (reason, ""))
    return f"{counted(count, one)} {why}".rstrip()


def what_words(wait: LockWait | LockSpan) -> str:
    """Return what *wait* was for: ``the lock of an object (list)``."""
    words = KIND_WORDS[wait.kind]
    return words if wait.type is None else f"{words} ({printable(wait.type)})"


def short_words(wait: LockWait) -> str:
    """Return what *wait* was for, for where there is little room: ``object (list)``."""
    kind = wait.kind.value
    return kind if wait.type is None else f"{kind} ({printable(wait.type)})"


def stops_words(totals: LockTotals, observed_ns: int) -> Iterator[str]:
    """Yield how often the world was stopped and for how long, in a sentence, if it ever was."""
    number = sum(stops.stops for stops in totals.stops)
    if not number:
        return
    ns = sum(stops.ns for stops in totals.stops)
    longest_ns = max(stops.longest_ns for stops in totals.stops)
    yield (
        f"The world was stopped {short_number(number * NS_PER_S / max(1, observed_ns))} times a "
        f"second, {percent(ns / max(1, observed_ns))} of the time; the longest stop took "
        f"{short_duration(longest_ns)}."
    )


def limits_of(process: LockProcess) -> Iterator[str]:
    """Yield what is not seen in *process*, in sentences."""
    minor = tuple(int(part) for part in process.python.rstrip("t").split(".")[:2])
    if minor < _TYPED:
        yield (
            "In CPython 3.13 a lock of the C API may be an RLock, in its first releases a Lock too."
        )
    if process.python.endswith("t"):
        yield "Who takes a lock while it is free is not seen, nor what is tried without a lock."
    else:
        yield "What a thread that got its lock waits for the GIL then is in the figures of the GIL."
