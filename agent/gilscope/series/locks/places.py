"""Says which places at which threads wait for locks have time series of their own."""

from collections.abc import Iterable, Mapping
from typing import Final

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import Tally
from gilscope.model.locks import LockObservation, LockWait
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.series.by_name.ledger import Labels, Ledger
from gilscope.series.by_name.owners import Owner, process_itself, service_of
from gilscope.series.by_name.remembered import Remembered
from gilscope.series.by_name.service_book import IDLE_NS, MOST_LINES
from gilscope.series.by_name.top_series import Shown, TopSeries

__all__ = ["LockSeries"]

_NOBODY: Final = "not known"
"""Who released what was not seen."""


class LockSeries:
    """The books of all processes whose locks are traced. Not for several threads at a time."""

    def __init__(
        self, limit: int, application: Application = EVERYBODYS, *, by_service: bool = False
    ) -> None:
        """Give *limit* places of each process series of their own, at most; 0: there are none.

        *application* says which frames are not of libraries. Series are of services if
        *by_service*.
        """
        self._limit = limit
        self._application = application
        self._by_service = by_service
        self._owner_of = service_of if by_service else process_itself
        self._processes: dict[int, _Places] = {}
        self._owners: Remembered[Owner, _Book] = Remembered(self._book)

    def series(self, observations: Iterable[LockObservation]) -> Mapping[Owner, tuple[Shown, ...]]:
        """Return what to export of the processes in *observations*, by owner.

        The labels are waiter, releaser, type and kind. A program has as many types as it likes, so
        what has no series of its own is told apart by kind alone.
        """
        if not self._limit:
            return {}
        at_ns: dict[Owner, int] = {}
        present = set()
        for seen in observations:
            pid, owner = seen.process.pid, self._owner_of(seen.process)
            # What cannot be trusted now may be again: it would be gained once more.
            present.add(pid)
            if seen.totals is None or seen.invalid:
                continue
            places = self._processes.get(pid)
            # A process may have replaced its program, or have another's number.
            if places is None or places.since_ns != seen.since_ns:
                if not self._by_service:
                    self._owners.pop(owner, None)
                places = _Places(seen.since_ns, self._application, self._owners[owner].totals)
                self._processes[pid] = places
            places.enter(wait for thread in seen.totals.threads for wait in thread.waits)
            at_ns[owner] = seen.totals.at_ns
        for pid in self._processes.keys() - present:
            del self._processes[pid]
        if at_ns:
            self._owners.forget_absent(at_ns, max(at_ns.values()))
        return {owner: self._owners[owner].shown(at_ns[owner]) for owner in at_ns}

    def forget(self, owners: Iterable[Owner]) -> None:
        """Forget owners of which nobody is left."""
        for owner in owners:
            self._owners.pop(owner, None)

    def _book(self) -> "_Book":
        return _Book(self._limit, is_service=self._by_service)


class _Book:
    """That of one owner."""

    def __init__(self, limit: int, *, is_service: bool) -> None:
        self.totals = Ledger(())
        most, idle_ns = (limit, IDLE_NS) if is_service else (None, None)
        self._slots = TopSeries(self.totals, limit, width=3, most=most, idle_ns=idle_ns)

    def shown(self, at_ns: int) -> tuple[Shown, ...]:
        """Return what the series show."""
        shown = self._slots.shown(at_ns)
        if len(self.totals.lines) > MOST_LINES:
            self.totals.forget_all_but(self._slots.chosen)
        return shown


class _Places:
    """Those of one process."""

    def __init__(self, since_ns: int, application: Application, above: Ledger) -> None:
        self.since_ns = since_ns
        self._application = application
        self._names = SiteNames()
        self._totals = Ledger((), above)

    def enter(self, waits: Iterable[LockWait]) -> None:
        """Take over *waits* as they are now; what is no contention is left out."""
        contended = [wait for wait in waits if wait.kind.is_contention]
        keys = [(id(wait.stack), id(wait.released), wait.kind, wait.type) for wait in contended]
        tallies = [Tally(wait.wait_ns, wait.waits) for wait in contended]
        self._totals.update(keys, tallies, contended, self._named)

    def _named(self, wait: LockWait) -> tuple[Labels, Labels]:
        waiter = self._names.owner(application_frame(wait.stack, self._application), wait.stack)
        releaser = _NOBODY
        if wait.released.is_known:
            frame = application_frame(wait.released, self._application)
            releaser = self._names.owner(frame, wait.released)
        return (waiter, releaser, wait.type or ""), (wait.kind.value,)
