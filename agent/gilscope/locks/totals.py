"""Turns what the kernel's tables hold of locks into totals."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Final

from gilscope.locks.abi import LONGEST_TYPE, SleepKind
from gilscope.model.locks import LockKind, LockThread, LockWait
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack
from gilscope.text.printable import label
from gilscope.values import Record, dataclass

__all__ = ["RawLocks", "added_up", "in_flight", "threads_of", "wait_of"]

_MUTEX, _OTHER = 0, 1
"""``enum want``."""
_KINDS: Final = {
    SleepKind.OBJECT: LockKind.OBJECT,
    SleepKind.INTERPRETER: LockKind.INTERPRETER,
    SleepKind.OTHER: LockKind.OTHER,
    SleepKind.SEMAPHORE: LockKind.C_API,
    SleepKind.STOPPED: LockKind.WORLD_STOP,
    SleepKind.STOPPING: LockKind.WORLD_STOP_REQUEST,
    SleepKind.EVENT: LockKind.IDLE,
}
_SHOWN: Final = (LockKind.OBJECT, LockKind.OTHER, LockKind.INTERPRETER)
"""Kinds of which the type says more."""
_LOCK, _RLOCK = "_thread.lock", "_thread.RLock"
_LOCKS: Final = {_LOCK: LockKind.LOCK, _RLOCK: LockKind.RLOCK}
_CONDITION: Final = ("threading.py", "Condition.wait")
"""File and function in which a thread waits, by a lock of its own, to be notified."""

_Key = tuple[int, int, str, int, int, int]
"""Thread, number of the kind, type, stack, that of who has ended the wait, and of who had the lock
when it began."""


@dataclass(slots=True)
class RawLocks:
    """What the tables hold of one process."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    threads: dict[int, Record] = field(default_factory=dict)
    """By thread id."""
    waits: list[tuple[Record, Record]] = field(default_factory=list)
    """``struct wait_key`` and ``struct wait``."""
    stops: list[tuple[Record, Record]] = field(default_factory=list)
    """``struct stop_key`` and ``struct stop``."""
    lost: dict[str, int] = field(default_factory=dict)
    traps: int = 0


@dataclass(frozen=True, slots=True)
class _Sums:
    """What one thread has waited for at one place."""

    wait_ns: int = 0
    slept_ns: int = 0
    waits: int = 0
    sleeps: int = 0
    longest_ns: int = 0

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.wait_ns + other.wait_ns,
            self.slept_ns + other.slept_ns,
            self.waits + other.waits,
            self.sleeps + other.sleeps,
            max(self.longest_ns, other.longest_ns),
        )


def threads_of(
    raw: RawLocks, stacks: Mapping[int, Stack], *, has_flights: bool = True
) -> tuple[LockThread, ...]:
    """Return the threads of *raw*, those that lost the most first; *stacks* are by their ids.

    What is in flight counts where it *has_flights*: of those that outlast a window nothing will
    count, and what has been shown must not be taken back.
    """
    sums: defaultdict[_Key, _Sums] = defaultdict(_Sums)
    for key, record in raw.waits:
        place = (key["stack"], key["released"], key["held"])
        sums[key["tid"], key["kind"], _text(key["type"]), *place] += _Sums(
            record["wait_ns"],
            record["slept_ns"],
            record["waits"],
            record["sleeps"],
            record["longest_ns"],
        )
    for tid, thread in raw.threads.items() if has_flights else ():
        flight = in_flight(tid, thread, raw.at_ns)
        if flight is not None:
            sums[flight[0]] += flight[1]
    by_thread: defaultdict[int, list[LockWait]] = defaultdict(list)
    for (tid, number, type_name, *ids), each in sums.items():
        ends = tuple(stacks.get(number_of, UNKNOWN_STACK) for number_of in ids)
        wait = _wait(SleepKind(number), type_name, ends, each)
        by_thread[tid].append(wait)
    threads = (
        LockThread(tid, _name(raw.threads.get(tid)), _costliest_first(waits))
        for tid, waits in by_thread.items()
    )
    return tuple(sorted(threads, key=lambda each: (-each.contended_ns, -each.idle_ns, each.tid)))


def added_up(waits: Iterable[tuple[Record, Record]]) -> list[tuple[Record, Record]]:
    """Return *waits*, entries of the table, with one entry for what differs by the thread alone."""
    found: dict[tuple[object, ...], tuple[Record, Record]] = {}
    for key, record in waits:
        shared = {**key, "tid": 0}
        what = tuple(shared.values())
        known = found.get(what)
        found[what] = (shared, record if known is None else _added(known[1], record))
    return list(found.values())


def _added(one: Record, other: Record) -> Record:
    longest_ns = max(one["longest_ns"], other["longest_ns"])
    return {**{name: one[name] + other[name] for name in one}, "longest_ns": longest_ns}


def in_flight(tid: int, thread: Record, now_ns: int) -> tuple[_Key, _Sums] | None:
    """Return what a thread that sleeps now has waited and is not counted yet."""
    if not thread["asleep_ns"]:
        return None
    what = thread["sleeps_for"]
    slept_ns = wait_ns = max(0, now_ns - thread["asleep_ns"])
    is_new = True
    if what == _MUTEX:
        counted_ns = thread["counted_ns"] - thread["counted_then_ns"]
        wait_ns = max(0, now_ns - thread["wanted_ns"] - counted_ns)
        is_new = not thread["is_counted"]
    type_name, held = (_text(thread["type"]), thread["held"]) if what == _MUTEX else ("", 0)
    key = (tid, thread["kinds"][what], type_name, thread["stacks"][what], 0, held)
    return key, _Sums(wait_ns, slept_ns, int(is_new), 1, wait_ns)


def wait_of(sleep: SleepKind, type_name: str, stack: Stack) -> tuple[LockKind, str | None]:
    """Return what is waited for at *stack*, and the type of the object if it is the lock of one.

    Of a lock of the interpreter it is that lock's name, if it has one.
    """
    kind = _kind(sleep, type_name, stack)
    shown = type_name if kind in _SHOWN and type_name else None
    if shown is not None and len(shown) == LONGEST_TYPE - 1:
        shown += "..."
    return kind, None if shown is None else label(shown)


def _wait(sleep: SleepKind, type_name: str, ends: Sequence[Stack], sums: _Sums) -> LockWait:
    stack, released, held = ends
    kind, shown = wait_of(sleep, type_name, stack)
    return LockWait(
        kind=kind,
        type=shown,
        stack=stack,
        released=released,
        held=held,
        wait_ns=sums.wait_ns,
        slept_ns=sums.slept_ns,
        waits=sums.waits,
        sleeps=sums.sleeps,
        longest_ns=sums.longest_ns,
    )


def _kind(sleep: SleepKind, type_name: str, stack: Stack) -> LockKind:
    # What a condition waits by is a lock of its own. In CPython 3.13 that may be one whose type is
    # not known, and so may the condition's RLock, which the thread takes again behind that wait.
    is_lock = sleep is SleepKind.SEMAPHORE or type_name == _LOCK
    if is_lock and stack.frames and _place(stack.frames[0]) == _CONDITION:
        return LockKind.IDLE
    if sleep is not SleepKind.LOCK_OBJECT:
        return _KINDS[sleep]
    return _LOCKS.get(type_name, LockKind.OTHER)


def _place(frame: Frame) -> tuple[str, str]:
    return PurePosixPath(frame.file).name, frame.function


def _costliest_first(waits: Iterable[LockWait]) -> tuple[LockWait, ...]:
    """Return *waits*; what is the same to a reader is one of them."""
    merged: dict[tuple[LockKind, str | None, Stack, Stack, Stack], LockWait] = {}
    for each in waits:
        key = (each.kind, each.type, each.stack, each.released, each.held)
        known = merged.get(key)
        merged[key] = each if known is None else _sum(known, each)
    return tuple(sorted(merged.values(), key=lambda each: -each.wait_ns))


def _sum(one: LockWait, other: LockWait) -> LockWait:
    return replace(
        one,
        wait_ns=one.wait_ns + other.wait_ns,
        slept_ns=one.slept_ns + other.slept_ns,
        waits=one.waits + other.waits,
        sleeps=one.sleeps + other.sleeps,
        longest_ns=max(one.longest_ns, other.longest_ns),
    )


def _name(thread: Record | None) -> str:
    return "" if thread is None else label(_text(thread["name"]))


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode(errors="replace")
