"""A process whose threads take and let go of locks, with probes in it, all made of Python."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gilscope.bpf.map import Table
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.gil.probes import window as window_module
from gilscope.gil.probes.window import Window, WindowKernel
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.totals.process_totals import process_totals
from gilscope.gil.totals.raw import RawLock, RawProcess
from gilscope.model.gil import Gil, HoldTotals, ProcessTotals, ThreadTotals
from gilscope.model.histogram import SLOTS, slot_of
from gilscope.values import Record

__all__ = ["COND", "OTHER_COND", "OTHER_SLOT", "PID", "SLOT", "Hold", "Process"]

PID, SLOT, OTHER_SLOT = 100, 3, 8
COND, OTHER_COND = 0x1000, 0x2000

_ACQUIRE, _RELEASE = Hook("on_acquire", "/python", 1), Hook("on_release", "/python", 2)


class _Array:
    """A table with entries for all numbers, zeroed."""

    def __init__(
        self, zero: Callable[[], dict[str, Any]], before_write: Callable[[], None] | None = None
    ) -> None:
        self._zero = zero
        self._before_write = before_write
        self.records: dict[int, dict[str, Any]] = defaultdict(zero)

    def get(self, key: dict[str, int]) -> dict[str, Any]:
        """Return a copy, as the system call makes it."""
        return dict(self.records[key["value"]])

    def entry(self, key: dict[str, int], name: str) -> "_Entry":
        """Return what reads one field."""
        return _Entry(self, key, name)

    def change(self, key: dict[str, int], value: dict[str, Any], name: str) -> "_Change":
        """Return what replaces the record once one field is known."""
        return _Change(self, key, value, name)

    def put(self, key: dict[str, int], value: dict[str, Any]) -> None:
        """Replace the record; what is not given is zero."""
        if self._before_write is not None:
            self._before_write()
        self.records[key["value"]] = {**self._zero(), **value}


@dataclass(frozen=True, slots=True)
class _Entry:
    array: _Array
    key: dict[str, int]
    name: str

    def read(self) -> int:
        number: int = self.array.get(self.key)[self.name]
        return number


@dataclass(frozen=True, slots=True)
class _Change:
    array: _Array
    key: dict[str, int]
    value: dict[str, Any]
    name: str

    def make(self, number: int) -> None:
        self.array.put(self.key, {**self.value, self.name: number})


def _no_window() -> dict[str, Any]:
    return dict.fromkeys(("from_ns", "until_ns", "stop_at_traps", "counts_begun"), 0)


def _no_lock() -> dict[str, Any]:
    return {
        **dict.fromkeys(("version_begin", "version_end", "cond", "held_since_ns"), 0),
        **dict.fromkeys(("released_ns", "held_ns", "hold_sum_ns", "switch_sum_ns"), 0),
        **dict.fromkeys(("traps", "unknown_takes", "tgid", "holder_tid"), 0),
        "hold_slots": (0,) * SLOTS,
        "switch_slots": (0,) * SLOTS,
    }


def _no_thread() -> dict[str, Any]:
    return {
        "wait_ns": (0,) * 4,
        "waits": (0,) * 4,
        **dict.fromkeys(("wait_started_ns", "yield_started_ns", "forced_drop_ns"), 0),
        **dict.fromkeys(("interval_ns", "cause", "drop_requests", "exited_ns"), 0),
        **dict.fromkeys(("hold_ns", "holds", "last_hold_began_ns"), 0),
        **dict.fromkeys(("failed_wakeups", "failed_wakeup_wait_ns", "failed_since_ns"), 0),
    }


@dataclass(slots=True)
class Hold:
    """A hold as it really was."""

    cond: int
    tid: int
    from_ns: int
    until_ns: int | None = None

    def part_ns(self, from_ns: int, until_ns: int) -> int:
        """Return how much of it lies between the two times; they are in the past."""
        end_ns = until_ns if self.until_ns is None else min(self.until_ns, until_ns)
        return max(0, end_ns - max(self.from_ns, from_ns))


@dataclass(slots=True)
class _Probes:
    """Opens and closes probes as `Uprobes` does; taking one out takes until `finish_closing`."""

    places: dict[int, str] = field(default_factory=dict)
    """The program by descriptor, of those that trap."""
    refusals: dict[str, Exception] = field(default_factory=dict)
    """What putting a program in raises."""
    closing: dict[int, Future[None]] = field(default_factory=dict)
    lapsed: set[int] = field(default_factory=set)
    """Those that the keeper has taken out by itself."""
    opened: int = 0
    has_links: bool = True

    def open(self, pid: int, hooks: Iterable[Hook], cookie: int, *, is_window: bool) -> list[int]:
        assert (PID, SLOT, True) == (pid, cookie, is_window)
        made = []
        for hook in hooks:
            if hook.program in self.refusals:
                raise self.refusals[hook.program]
            self.opened += 1
            self.places[self.opened] = hook.program
            made.append(self.opened)
        return made

    def close(self, descriptors: Iterable[int]) -> list[Future[None]]:
        futures = []
        for fd in descriptors:
            assert fd in self.places or fd in self.lapsed, "closed twice"
            assert fd not in self.closing, "closed twice"
            self.closing[fd] = Future()
            futures.append(self.closing[fd])
        return futures

    def finish_closing(self) -> None:
        """Let all be out that are on their way."""
        for fd, future in self.closing.items():
            self.places.pop(fd, None)
            future.set_result(None)
        self.closing.clear()


class Process:
    """One process with its threads and locks, the BPF programs, and a clock that stands still."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, inside_hold_ns: int = 0, cond: int = COND
    ) -> None:
        """Begin with the lock at *cond* known to the probes; 0: none is."""
        self.now_ns = 1_000_000
        self.threads: dict[int, dict[str, Any]] = defaultdict(_no_thread)
        self.slots = {COND: SLOT}
        self.holds: list[Hold] = []
        self.is_readable = True
        self.has_named_threads = True
        self.on_look: Callable[[], None] | None = None
        """Happens once, just before somebody samples at a lock in its memory."""
        self.on_write: Callable[[], None] | None = None
        """Happens once, just before the window is changed."""
        self.notices = 0
        self.invalid_holders = 0
        self.probes = _Probes()
        self._windows, self._locks = _Array(_no_window, self._before_write), _Array(_no_lock)
        self._locks.put({"value": SLOT}, {"cond": cond, "tgid": PID})
        monkeypatch.setattr(window_module, "time", self)
        self.window = Window(
            PID,
            SLOT,
            WindowKernel(
                cast("Table", self._windows),
                cast("Table", self._locks),
                cast("Uprobes", self.probes),
            ),
            WindowSites((_ACQUIRE,), (_RELEASE,), inside_hold_ns),
            self,
        )

    def monotonic_ns(self) -> int:
        """Return the time, in place of `time.monotonic_ns`."""
        return self.now_ns

    def passes(self, ns: int) -> None:
        """Let time pass."""
        self.now_ns += ns

    def lapses(self) -> None:
        """Let the keeper close the window, having heard nothing of the agent."""
        window = self._windows.records[SLOT]
        window["until_ns"] = min(window["until_ns"], self.now_ns)
        self.probes.lapsed |= self.probes.places.keys()
        self.probes.places.clear()

    # What threads do.

    def take(self, tid: int, cond: int = COND) -> None:
        """Let thread *tid* take the lock."""
        assert not self._is_held(cond)
        self.holds.append(Hold(cond, tid, self.now_ns))
        if "on_acquire" in self.probes.places.values():
            self._on_acquire(tid, cond)

    def release(self, cond: int = COND) -> None:
        """Let the thread that holds the lock let go of it."""
        hold = self._last(cond)
        assert hold is not None
        assert hold.until_ns is None
        hold.until_ns = self.now_ns
        if "on_release" in self.probes.places.values():
            self._on_release(hold.tid, cond)

    def _is_held(self, cond: int) -> bool:
        hold = self._last(cond)
        return hold is not None and hold.until_ns is None

    def _last(self, cond: int) -> Hold | None:
        return next((hold for hold in reversed(self.holds) if hold.cond == cond), None)

    # What the window sees of its memory.

    def is_locked(self, cond: int) -> bool | None:
        """Return what `gilscope.runtimes.base.Locks` promises."""
        if self.on_look is not None:
            happen, self.on_look = self.on_look, None
            happen()
        return self._is_held(cond) if self.is_readable else None

    def _before_write(self) -> None:
        if self.on_write is not None:
            happen, self.on_write = self.on_write, None
            happen()

    def holder_tid(self, cond: int) -> int | None:
        """Return what `gilscope.runtimes.base.Locks` promises."""
        hold = self._last(cond)
        is_known = hold is not None and self.is_readable and self.has_named_threads
        return hold.tid if hold is not None and is_known else None

    # The programs; see probes/gil/holds.bpf.h.

    def _lock_at(self, cond: int) -> dict[str, Any] | None:
        first = self._locks.records[SLOT]
        if first["cond"] == cond:
            return first
        is_known = self._windows.records[SLOT]["has_other_locks"] and cond in self.slots
        return self._locks.records[self.slots[cond]] if is_known else None

    def _on_acquire(self, tid: int, cond: int) -> None:
        now, window, first = self.now_ns, self._windows.records[SLOT], self._locks.records[SLOT]
        first["cond"] = first["cond"] or cond
        lock = self._lock_at(cond)
        if lock is None:
            first["traps"] += 1
            first["unknown_takes"] += 1
            return
        is_inside = window["from_ns"] <= now < window["until_ns"]
        if is_inside and first["traps"] >= window["stop_at_traps"]:
            window["until_ns"] = now
            self.notices += 1
        first["traps"] += 1
        if not window["from_ns"] <= now < window["until_ns"]:
            if not lock["held_since_ns"]:
                lock["released_ns"] = now
            return
        self.invalid_holders += bool(lock["holder_tid"] != tid and lock["held_since_ns"])
        lock.update(holder_tid=tid, held_since_ns=now)

    def _on_release(self, tid: int, cond: int) -> None:
        now, window = self.now_ns, self._windows.records[SLOT]
        self._locks.records[SLOT]["traps"] += 1
        lock = self._lock_at(cond)
        if lock is None:
            return
        if lock["held_since_ns"]:
            self.invalid_holders += lock["holder_tid"] != tid
        elif (
            not window["counts_begun"]
            or now < window["from_ns"]
            or lock["released_ns"] >= window["from_ns"]
        ):
            return
        self._finish_hold(lock, window, tid)
        self.notices += now >= window["until_ns"]

    def _finish_hold(self, lock: dict[str, Any], window: dict[str, Any], tid: int) -> None:
        began_ns, now = lock["held_since_ns"], self.now_ns
        from_ns = max(began_ns, window["from_ns"])
        held_ns = max(0, min(now, window["until_ns"]) - from_ns)
        thread = self.threads[tid]
        thread["last_hold_began_ns"] = began_ns or from_ns
        if began_ns:
            held_ns = max(0, held_ns - window["inside_hold_ns"])
            ns = max(0, now - began_ns - window["inside_hold_ns"])
            thread["holds"] += 1
            lock["hold_sum_ns"] += ns
            slots = list(lock["hold_slots"])
            slots[slot_of(ns)] += 1
            lock["hold_slots"] = tuple(slots)
        thread["hold_ns"] += held_ns
        lock["held_ns"] += held_ns
        lock.update(held_since_ns=0, released_ns=now, holder_tid=tid)

    def pretend_hold(self, tid: int) -> None:
        """Let the record of the first lock show a hold that nobody will see the end of."""
        self._locks.records[SLOT].update(holder_tid=tid, held_since_ns=self.now_ns)

    def ends(self) -> None:
        """Let the process be killed: what holds the first lock is finished, as at a thread's end.

        Its memory is gone, too.
        """
        lock = self._locks.records[SLOT]
        if lock["held_since_ns"]:
            self._finish_hold(lock, self._windows.records[SLOT], lock["holder_tid"])
        self.is_readable = False

    def execs(self) -> None:
        """Let the process replace its program; see probes/gil/lifetime.bpf.h."""
        self.ends()
        self._windows.records[SLOT]["until_ns"] = self.now_ns

    # What is made of it.

    def add_lock(self) -> None:
        """Let a further interpreter's lock be known, in a slot as `GilProbe` prepares it."""
        record = {"cond": OTHER_COND, "tgid": PID, "released_ns": self.now_ns}
        self._locks.put({"value": OTHER_SLOT}, record)
        self.slots[OTHER_COND] = OTHER_SLOT
        self.window.add_lock(OTHER_COND, OTHER_SLOT)

    def locks(self) -> dict[int, RawLock]:
        """Return what the window says of the locks now."""
        return self.window.read(self.now_ns)

    def totals(self) -> ProcessTotals:
        """Return the totals as they are made of the window and the threads' records."""
        locks = self.locks()
        threads: dict[int, Record] = {tid: dict(record) for tid, record in self.threads.items()}
        gils = {cond: Gil(cond, number) for number, cond in enumerate(locks)}
        raw = RawProcess(threads=threads, locks=locks)
        return process_totals(raw, self.now_ns, gils, {}, sees_holds=True)

    def held(self, cond: int = COND) -> HoldTotals:
        """Return the totals of the holds of one lock."""
        (found,) = [gil.holds for gil in self.totals().gils if gil.gil.cond == cond]
        assert found is not None
        return found

    def thread(self, tid: int) -> ThreadTotals:
        """Return the totals of one thread."""
        (found,) = [thread for thread in self.totals().threads if thread.tid == tid]
        return found
