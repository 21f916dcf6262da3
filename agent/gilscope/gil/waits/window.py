"""The probes on the waits of one process: in all the time, or in windows."""

import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from gilscope.bpf.map import Table
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.gil.totals.process_totals import kind_so_far, waiting_since_ns
from gilscope.model.kinds import Kind
from gilscope.values import Record, dataclass

__all__ = ["InFlight", "Parts", "WaitKernel", "WaitWindow"]

_NEVER_NS: Final = (1 << 64) - 1
_SHARED_FOR_NS: Final = 10_000_000_000
"""Longer than it takes to put probes into fifty processes, and to take the shared ones out."""
_IN_FLIGHT: Final = ("wait_started_ns", "yield_started_ns", "forced_drop_ns", "failed_since_ns")


class InFlight(NamedTuple):
    """When the first waits of a process that are in flight began, CLOCK_MONOTONIC."""

    counted_ns: int
    """Of those that count; far off where there are none."""
    left_out_ns: int
    """Of the others, as far as they have been seen; likewise."""


class Parts(NamedTuple):
    """What a process has, as of each call."""

    conds: Callable[[], Iterable[int]]
    """Its locks, by address of ``cond``."""
    tids: Callable[[], Iterable[int]]
    """Its threads."""


@dataclass(frozen=True, slots=True)
class WaitKernel:
    """What windows of waits need of the kernel."""

    windows: Table
    threads: Table
    gils: Table
    drop_requests: Table
    uprobes: Uprobes
    groups: MutableMapping[int, list[int]]
    """Of probes, by the process that they are in."""


class WaitWindow:
    """When the waits of one process count.

    A wait counts if it begins inside a window, and is followed to its end, which may come after the
    window: so the durations that are counted are whole, and no length is preferred. In between the
    probes are taken out. At first all waits count.
    """

    def __init__(
        self,
        pid: int,
        slot: int,
        kernel: WaitKernel,
        hooks: Sequence[Hook],
        parts: Parts,
    ) -> None:
        """Control *slot* for process *pid*, into which *hooks* have been put."""
        self._pid = pid
        self._slot = slot
        self._kernel = kernel
        self._hooks = hooks
        self._parts = parts
        self._is_cleared = True
        self.closing: list[Future[None]] = []
        """What says when the probes are out that have been taken out last."""
        self._began_ns = time.monotonic_ns()
        # No wait is older, whenever it has begun: the probes have never been out.
        self._placed_at_ns = 1
        self._from_ns, self._until_ns = self._began_ns, _NEVER_NS
        self._seen_ns = 0
        self._has_been_out = False
        self.placed_for_ns = 0
        """For how long the probes have been in the process, all times that have ended together."""
        self.lingered_ns = 0
        """How long it has taken to take them out. With perf events they are run into meanwhile, and
        nobody counts that."""
        self._put_in_ns = self._began_ns
        self._shared_until_ns = 0
        self._given_up_ns: dict[int, list[int]] = {}
        """By thread and kind: how long waits had lasted that were not followed to their end."""
        self.is_placed = True
        """Whether the probes are in the process."""
        put_always(kernel.windows, slot)

    @property
    def until_ns(self) -> int:
        """When the window ends, CLOCK_MONOTONIC; far off where all waits count."""
        return self._until_ns

    @property
    def closes_unseen(self) -> bool:
        """Whether traps that come while probes are being taken out are not seen."""
        return not self._kernel.uprobes.has_links

    @property
    def is_out(self) -> bool:
        """Whether the probes are out, all of them, and nothing is left of what was in flight."""
        is_out = not self.is_placed and all(each.done() for each in self.closing)
        if is_out and not self._is_cleared:
            self._clear()
        return is_out

    def unseen_ns(self, now_ns: int) -> int:
        """Return for how long waits that began have not counted, until *now_ns*."""
        seen_ns = self._seen_ns
        if self.is_placed:
            seen_ns += max(0, min(now_ns, self._until_ns) - self._from_ns)
        return max(0, now_ns - self._began_ns - seen_ns)

    def place(self, from_ns: int, warm_up_ns: int, length_ns: int) -> None:
        """Put the probes in for a window that begins at *from_ns*, or later.

        Not before they have been in for *warm_up_ns*. Raises what `Uprobes.open` raises.
        """
        self._placed_at_ns = time.monotonic_ns()
        self._tell(_NEVER_NS, _NEVER_NS)
        self._kernel.groups[self._pid] = self._kernel.uprobes.open(
            self._pid, self._hooks, self._slot
        )
        self.is_placed = True
        self._put_in_ns = self._placed_at_ns
        # To put them in may have taken longer than a window lasts.
        from_ns = max(from_ns, time.monotonic_ns() + warm_up_ns)
        self._tell(from_ns, from_ns + length_ns)

    def go_on(self, from_ns: int, length_ns: int) -> None:
        """Begin another window, while the probes are in still."""
        now_ns = time.monotonic_ns()
        self._note_seen(now_ns)
        from_ns = max(from_ns, now_ns)
        self._tell(from_ns, from_ns + length_ns)

    def end(self) -> None:
        """Let no wait count any more that begins from now on."""
        now_ns = time.monotonic_ns()
        if now_ns < self._until_ns:
            self._tell(self._from_ns, max(now_ns, self._from_ns))

    def bear_two(self) -> None:
        """Let nothing count twice while there are probes of its own and shared ones, for now."""
        self._shared_until_ns = time.monotonic_ns() + _SHARED_FOR_NS
        self._tell(self._from_ns, self._until_ns)

    def in_flight(self) -> InFlight:
        """Return which waits are in flight."""
        counted_ns = left_out_ns = _NEVER_NS
        for _, record in self._records():
            if self._counts(record):
                counted_ns = min(counted_ns, waiting_since_ns(record))
            elif self._is_left_out(record):
                left_out_ns = min(left_out_ns, record["left_out_since_ns"])
        return InFlight(counted_ns, left_out_ns)

    def take_out(self) -> int:
        """Begin to take the probes out; return how many waits are not followed any further.

        They have lasted until now.
        """
        if not self.is_placed:
            return 0
        now_ns = time.monotonic_ns()
        self._note_seen(now_ns)
        cut = 0
        for tid, record in self._counted_in_flight():
            self._cut(tid, record, now_ns)
            cut += 1
        self.is_placed, self._is_cleared, self._has_been_out = False, False, True
        # Whoever ends meanwhile, or is seen by a probe that is not out yet, is in no wait.
        self._placed_at_ns = _NEVER_NS
        self._tell(_NEVER_NS, _NEVER_NS)
        groups = self._kernel.groups.pop(self._pid, ())
        # Those that it has shared may be there still.
        self.closing = [each for each in self.closing if not each.done()]
        closing = self._kernel.uprobes.close(groups)
        self.closing += closing
        self.placed_for_ns += now_ns - self._put_in_ns
        for each in closing:
            each.add_done_callback(lambda _: self._note_out(now_ns))
        return cut

    @property
    def longest_interval_ns(self) -> int:
        """The longest switch interval of its locks; 0: nobody has waited yet."""
        keys = [{"cond": cond, "tgid": self._pid} for cond in self._parts.conds()]
        records = [record for record in map(self._kernel.gils.get, keys) if record is not None]
        return max((record["interval_ns"] for record in records), default=0)

    def _note_out(self, closed_ns: int) -> None:
        self.lingered_ns += time.monotonic_ns() - closed_ns

    def _note_seen(self, now_ns: int) -> None:
        self._seen_ns += max(0, min(now_ns, self._until_ns) - self._from_ns)

    def _tell(self, from_ns: int, until_ns: int) -> None:
        """Let waits count that begin between the two."""
        self._from_ns, self._until_ns = from_ns, until_ns
        bounds = {
            "placed_ns": self._placed_at_ns,
            "from_ns": from_ns,
            "until_ns": until_ns,
            "shared_until_ns": self._shared_until_ns,
        }
        self._kernel.windows.put({"value": self._slot}, bounds)

    def followed(self, tid: int, record: Record) -> Record:
        """Return the *record* of thread *tid* without a wait in flight that is not followed.

        But with what such waits had lasted when they were given up.
        """
        if waiting_since_ns(record) and not self._counts(record):
            record = {**record, **dict.fromkeys(_IN_FLIGHT, 0)}
        if record["left_out"] and not self._is_left_out(record):
            record = {**record, "left_out": 0}
        if tid not in self._given_up_ns:
            return record
        wait_ns = zip(record["wait_ns"], self._given_up_ns[tid], strict=True)
        return {**record, "wait_ns": tuple(map(sum, wait_ns))}

    def forget_thread(self, tid: int) -> None:
        """Let *tid* be another thread from now on."""
        self._given_up_ns.pop(tid, None)

    def _records(self) -> Iterator[tuple[int, Record]]:
        """Yield the threads that have a record, with it."""
        for tid in self._parts.tids():
            record = self._kernel.threads.get({"value": tid})
            if record is not None and record["tgid"] == self._pid:
                yield tid, record

    def _counted_in_flight(self) -> Iterator[tuple[int, Record]]:
        for tid, record in self._records():
            if self._counts(record):
                yield tid, record

    def _counts(self, record: Record) -> bool:
        """Return whether the thread of *record* is in a wait that counts, and is followed."""
        since_ns = waiting_since_ns(record)
        return bool(since_ns) and (not self._has_been_out or since_ns >= self._placed_at_ns)

    def _is_left_out(self, record: Record) -> bool:
        return bool(record["left_out"]) and record["left_out_ns"] >= self._placed_at_ns

    def _cut(self, tid: int, record: Record, now_ns: int) -> None:
        ns = max(0, now_ns - waiting_since_ns(record))
        given_up = self._given_up_ns.setdefault(tid, [0] * len(record["waits"]))
        # The cause is that of an earlier one, if it has not come to sleep.
        kind = kind_so_far(record, ns) if record["wait_started_ns"] else Kind.PREEMPTION
        given_up[kind.number] += ns

    def _clear(self) -> None:
        # Nobody writes there: the probes are out, and whoever ends is in no wait.
        self._is_cleared = True
        for cond in self._parts.conds():
            key = {"cond": cond, "tgid": self._pid}
            record = self._kernel.gils.get(key)
            if record is not None and record["waiting"]:
                self._kernel.gils.put(key, {**record, "waiting": 0})
            self._kernel.drop_requests.delete(key)


def put_always(windows: Table, slot: int) -> None:
    """Let all waits of the process with *slot* count, whose probes have never been out."""
    windows.put({"value": slot}, {})
