"""The held time in windows of one process: what the probes have counted, and what they cannot see.

That is a hold that was there before a window and outlasts it, and the first part of one that lasts
from one window into the next.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from gilscope.gil.probes.coverage import NEVER_NS, Bounds
from gilscope.gil.probes.window_records import WindowRecords
from gilscope.gil.totals.raw import Holding, RawLock
from gilscope.runtimes.base import Locks
from gilscope.values import Record, dataclass

__all__ = ["HoldCounts", "Untouched"]


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who holds a lock that was held when the window began."""

    tid: int | None
    part_ns: int | None
    """How much of that is certain; None: all until now."""


@dataclass(frozen=True, slots=True)
class Untouched:
    """A lock that is held at the end of a window as it was at its beginning."""

    cond: int
    holder: _Holder
    held_ns: int
    """What the probes had counted for it."""


class HoldCounts:
    """Held time by lock and thread. Which window it is of, its callers say."""

    def __init__(self, records: WindowRecords, reader: Locks, inside_hold_ns: int) -> None:
        """Count what *records* have, and what *reader* sees of locks without probes.

        *inside_hold_ns* is taken off what is counted here, as the probes do.
        """
        self._records = records
        self._reader = reader
        self._inside_hold_ns = inside_hold_ns
        self._credits_ns: dict[int, Counter[int | None]] = defaultdict(Counter)
        self._sampled: dict[int, _Holder] = {}
        """Who held a lock when it was last sampled, in this window."""

    def begin(self, locks: Mapping[int, Record], last: Bounds, bounds: Bounds) -> None:
        """Begin with the window of *bounds*, before which *locks* were so.

        A hold that began in the *last* window counts for its part there, too.
        """
        self._sampled.clear()
        for cond, before in locks.items():
            now = self._records.lock(cond)
            if before["held_since_ns"] and (
                now["held_since_ns"] == before["held_since_ns"]
                or now["released_ns"] >= bounds.from_ns
            ):
                part_ns = last.part_ns(before["held_since_ns"], NEVER_NS)
                self._credits_ns[cond][before["holder_tid"]] += part_ns

    def untouched(self, bounds: Bounds) -> list[Untouched]:
        """Return the locks that are held now and were so all the time since *bounds* begin."""
        locks = {cond: lock for cond, lock in self._records.locks() if _is_untouched(lock, bounds)}
        holders = {cond: self._sample(cond, bounds) for cond in locks}
        return [
            Untouched(cond, holder, locks[cond]["held_ns"])
            for cond, holder in holders.items()
            if holder is not None
        ]

    def credit_untouched(self, locks: list[Untouched], covered_ns: int) -> None:
        """Count a window that has covered so much for *locks* that were `untouched` at its end.

        If one was released before the end was written, the probes have counted that.
        """
        for lock in locks:
            if self._records.lock(lock.cond)["held_ns"] == lock.held_ns:
                part_ns = covered_ns if lock.holder.part_ns is None else lock.holder.part_ns
                self._credits_ns[lock.cond][lock.holder.tid] += part_ns

    def credit_unfinished(self, bounds: Bounds) -> None:
        """Count what was in flight at the end of a window up to there, its probes being out.

        Of a hold that nobody has seen anything of, only what was seen when the lock was last read:
        who has the lock now need not have had it then.
        """
        for cond, lock in list(self._records.locks()):
            if lock["held_since_ns"]:
                self._credits_ns[cond][lock["holder_tid"]] += self._part_ns(
                    lock, bounds, bounds.until_ns
                )
                ended = {**lock, "held_since_ns": 0, "released_ns": bounds.until_ns}
                self._records.put_lock(cond, ended)
            elif _is_untouched(lock, bounds) and cond in self._sampled:
                seen = self._sampled[cond]
                self._credits_ns[cond][seen.tid] += seen.part_ns or 0

    def forget_thread(self, tid: int) -> None:
        """Let *tid* be another thread from now on; what it has held stays with the lock."""
        for credits_ns in self._credits_ns.values():
            credits_ns[None] += credits_ns.pop(tid, 0)

    def read(self, bounds: Bounds, now_ns: int, *, is_open: bool) -> dict[int, RawLock]:
        """Return what is known of every lock at *now_ns*, by address of ``cond``.

        *bounds* are those of the window that is open, or of the last one.
        """
        return {
            cond: self._read_lock(cond, lock, bounds, now_ns, is_open=is_open)
            for cond, lock in self._records.locks()
        }

    def _read_lock(
        self, cond: int, lock: Record, bounds: Bounds, now_ns: int, *, is_open: bool
    ) -> RawLock:
        holding = self._holding(cond, lock, bounds, now_ns, is_open=is_open)
        if is_open and _is_untouched(lock, bounds):
            # If the old hold has ended while its holder was looked for, the probes have counted it.
            lock_now = self._records.lock(cond)
            if not _is_untouched(lock_now, bounds):
                lock = lock_now
                holding = self._holding(cond, lock, bounds, now_ns, is_open=is_open)
        return RawLock(lock, holding, self._credits_ns[cond])

    def _holding(
        self, cond: int, lock: Record, bounds: Bounds, now_ns: int, *, is_open: bool
    ) -> Holding | None:
        if lock["held_since_ns"]:
            part_ns = self._part_ns(lock, bounds, now_ns)
            return Holding(lock["holder_tid"], lock["held_since_ns"], part_ns)
        if not (is_open and _is_untouched(lock, bounds)):
            return None
        holder = self._sample(cond, bounds)
        if holder is None:
            return None
        if holder.part_ns is None:
            part_ns = bounds.part_ns(bounds.from_ns, now_ns)
            self._sampled[cond] = _Holder(holder.tid, part_ns)
        return Holding(holder.tid, bounds.from_ns, self._sampled[cond].part_ns or 0)

    def _sample(self, cond: int, bounds: Bounds) -> _Holder | None:
        """Return who holds a lock that was untouched a moment ago, and so has held it all along."""
        if self._reader.is_locked(cond):
            # Finding out who takes its time: a lock that was taken only now shows that by then.
            tid = self._reader.holder_tid(cond)
            is_the_old_hold = _is_untouched(self._records.lock(cond), bounds)
            return _Holder(tid, None) if is_the_old_hold else self._sampled.get(cond)
        # It is being released, and the probes are about to say so; or the process has ended. What
        # was held until somebody looked is certain.
        return self._sampled.get(cond)

    def _part_ns(self, lock: Record, bounds: Bounds, until_ns: int) -> int:
        part_ns = bounds.part_ns(lock["held_since_ns"], until_ns)
        return max(0, part_ns - self._inside_hold_ns)


def _is_untouched(lock: Record, bounds: Bounds) -> bool:
    # Neither acquired nor released since the window began: it is held all the time, or free.
    return not lock["held_since_ns"] and lock["released_ns"] < bounds.from_ns
