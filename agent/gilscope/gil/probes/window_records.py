"""The kernel's records of the window of one process and of its locks."""

from collections.abc import Iterator

from gilscope.bpf.map import Table
from gilscope.bpf.map_entry import Change
from gilscope.gil.probes.coverage import Bounds
from gilscope.values import Record

__all__ = ["WindowRecords"]


class WindowRecords:
    """Reads and writes them. Each lock has a slot; that of the first one is the window's, too."""

    def __init__(self, windows: Table, locks: Table, slot: int, inside_hold_ns: int) -> None:
        """Have the window and the first lock in *slot*.

        The probes take *inside_hold_ns* off each hold, by which their traps make it longer.
        """
        self._windows = windows
        self._locks = locks
        self._slot = slot
        self._inside_hold_ns = inside_hold_ns
        key = {"value": slot}
        self._traps = locks.entry(key, "traps")
        self._unknown_takes = locks.entry(key, "unknown_takes")
        self._until = windows.entry(key, "until_ns")
        self.other_slots: dict[int, int] = {}
        """The slots of the further locks of the process, by address of ``cond``."""

    @property
    def first_cond(self) -> int:
        """The address of the lock that was there first; 0: not known yet."""
        return int(self._record(self._slot)["cond"])

    def traps(self) -> int:
        """Return how often the process has run into an acquire or release site so far."""
        return self._traps.read() or 0

    def unknown_takes(self) -> int:
        """Return how often a lock was taken that had no slot."""
        return self._unknown_takes.read() or 0

    def until_ns(self) -> int:
        """Return when the window ends or has ended; `NEVER_NS` while that is open."""
        return self._until.read() or 0

    def change(
        self, bounds: Bounds, name: str, *, stop_at_traps: int, counts_begun: bool
    ) -> Change:
        """Return what tells the kernel of *bounds* once their field *name* is known."""
        return self._windows.change(
            {"value": self._slot},
            {
                "from_ns": bounds.from_ns,
                "until_ns": bounds.until_ns,
                "stop_at_traps": stop_at_traps,
                "inside_hold_ns": self._inside_hold_ns,
                "counts_begun": int(counts_begun),
                "has_other_locks": int(bool(self.other_slots)),
            },
            name,
        )

    def locks(self) -> Iterator[tuple[int, Record]]:
        """Yield the locks that are known, each by the address of its ``cond``."""
        first = self._record(self._slot)
        if first["cond"]:
            yield first["cond"], first
        for cond, slot in self.other_slots.items():
            yield cond, self._record(slot)

    def lock(self, cond: int) -> Record:
        """Return what the kernel has of the lock at *cond* now."""
        return self._record(self._slot_of(cond))

    def put_lock(self, cond: int, lock: Record) -> None:
        """Replace what the kernel has of the lock at *cond*."""
        self._locks.put({"value": self._slot_of(cond)}, lock)

    def forget_holds(self) -> None:
        """Let no lock be held: without probes at its end, a hold in flight has ended unseen."""
        for cond, lock in self.locks():
            if lock["held_since_ns"]:
                self.put_lock(cond, {**lock, "held_since_ns": 0})

    def _slot_of(self, cond: int) -> int:
        return self.other_slots.get(cond, self._slot)

    def _record(self, slot: int) -> Record:
        key = {"value": slot}
        while True:
            lock = self._locks.get(key)
            # The probes write a record while it is copied; a torn copy shows two versions.
            if lock is not None and lock["version_begin"] == lock["version_end"]:
                return lock
