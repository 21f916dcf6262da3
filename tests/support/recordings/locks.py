"""Made-up observations of locks, for totals and reports."""

from gilscope.locks.abi import LONGEST_TYPE, SleepKind
from gilscope.locks.stops import stops_of
from gilscope.locks.totals import RawLocks, threads_of
from gilscope.model.gil import TracingCost
from gilscope.model.locks import LockObservation, LockProcess, LockRecording, LockTotals
from gilscope.model.stack import Frame, Stack
from gilscope.values import Record

__all__ = [
    "APPEND",
    "HOLD",
    "MS",
    "RELEASE",
    "STACKS",
    "WAIT",
    "lock_recording",
    "raw",
    "stops",
    "thread",
    "wait",
]

MS = 1_000_000
_S = 1_000_000_000
APPEND, WAIT, RELEASE, HOLD = 1, 2, 3, 4
"""Stacks, by their ids."""
STACKS = {
    APPEND: Stack((Frame("append", "/app/app.py", 10, 12), Frame("work", "/app/app.py", 20, 22))),
    RELEASE: Stack((Frame("sort", "/app/app.py", 30, 33),)),
    HOLD: Stack((Frame("compare", "/app/app.py", 40, 41),)),
    WAIT: Stack((Frame("Condition.wait", "/usr/lib/python3.14/threading.py", 320, 359),)),
}


def _text(text: str, size: int) -> bytes:
    return text.encode().ljust(size, b"\0")


def wait(  # noqa: PLR0913 - each has a default
    tid: int,
    kind: SleepKind,
    type_name: str = "",
    *,
    stack: int = APPEND,
    released: int = 0,
    held: int = 0,
    wait_ms: int = 10,
    waits: int = 2,
) -> tuple[Record, Record]:
    """Return an entry of the kernel's table, slept in for half of the time."""
    stacks = {"stack": stack, "released": released, "held": held}
    key = {"tid": tid, "tgid": 4711, "kind": kind, **stacks}
    return {**key, "type": _text(type_name, LONGEST_TYPE)}, {
        "wait_ns": wait_ms * MS,
        "slept_ns": wait_ms * MS // 2,
        "waits": waits,
        "sleeps": waits,
        "longest_ns": wait_ms * MS,
    }


def stops(
    number: int, stopping_ms: int, standing_ms: int, *, is_collection: int = 1, stack: int = APPEND
) -> tuple[Record, Record]:
    """Return an entry of the kernel's table of stops, the longest of which took half of it all."""
    return {"tgid": 4711, "stack": stack, "is_collection": is_collection}, {
        "stops": number,
        "stopping_ns": stopping_ms * MS,
        "standing_ns": standing_ms * MS,
        "longest_ns": (stopping_ms + standing_ms) * MS // 2,
    }


def thread(name: str = "worker", **fields: int) -> Record:
    """Return the record of a thread that is awake, unless *fields* say otherwise."""
    return {
        "wanted_ns": 0,
        "counted_then_ns": 0,
        "counted_ns": 0,
        "asleep_ns": 0,
        "traps": 10,
        "exited_ns": 0,
        "is_counted": 0,
        "sleeps_for": 0,
        "stacks": (APPEND, WAIT),
        "held": 0,
        "kinds": (SleepKind.OBJECT, SleepKind.EVENT),
        "type": _text("list", LONGEST_TYPE),
        "name": _text(name, 16),
        **fields,
    }


def raw() -> RawLocks:
    """Return what tables might hold: 30 ms for a list, 20 ms for a Lock, a second of idleness."""
    return RawLocks(
        2 * _S,
        {11: thread("first"), 12: thread("second")},
        [
            wait(11, SleepKind.OBJECT, "list", released=RELEASE, held=HOLD, wait_ms=24),
            wait(11, SleepKind.OBJECT, "list", held=HOLD, wait_ms=6, waits=0),
            wait(12, SleepKind.LOCK_OBJECT, "_thread.lock", wait_ms=20),
            wait(12, SleepKind.LOCK_OBJECT, "_thread.lock", stack=WAIT, wait_ms=1000),
        ],
        [stops(5, 2, 8), stops(1, 0, 2, is_collection=0, stack=RELEASE)],
        {"began_unseen": 1},
    )


def lock_recording(
    *,
    python: str = "3.14.2t",
    invalid: str = "",
    has_totals: bool = True,
    observed_ns: int | None = None,
) -> LockRecording:
    """Return a recording of `raw`; without totals, of what could not be traced.

    With *observed_ns* it was seen in windows.
    """
    tables = raw()
    totals = LockTotals(
        tables.at_ns,
        threads_of(tables, STACKS),
        stops_of(tables, STACKS),
        tables.lost,
        20,
    )
    process = LockProcess(4711, "app.py", python, "/usr/bin/python3", "b" * 40, ("a check",))
    observation = LockObservation(
        process,
        _S,
        totals if has_totals else None,
        invalid,
        cost=TracingCost(60_000, 0.001, 20) if has_totals else None,
        observed_ns=_S if observed_ns is None else observed_ns,
        is_whole=observed_ns is None,
    )
    return LockRecording(observation, _S, sources={("/app/app.py", 12): "shared.append(1)"})
