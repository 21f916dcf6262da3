"""Says which places at which threads wait for locks have time series of their own."""

from collections.abc import Iterable, Mapping
from typing import Final

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import Tally
from gilscope.model.locks import LockObservation, LockWait
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.series.ledger import Labels, Ledger
from gilscope.series.top_series import Shown, TopSeries

__all__ = ["LockSeries"]

_NOBODY: Final = "not known"
"""Who released what was not seen."""


class LockSeries:
    """The books of all processes whose locks are traced. Not for several threads at a time."""

    def __init__(self, limit: int, application: Application = EVERYBODYS) -> None:
        """Give *limit* places of each process series of their own, at most; 0: there are none.

        *application* says which frames are not of libraries.
        """
        self._limit = limit
        self._application = application
        self._processes: dict[int, _Places] = {}

    def series(self, observations: Iterable[LockObservation]) -> Mapping[int, tuple[Shown, ...]]:
        """Return what to export of each process in *observations*, by pid.

        The labels are waiter, releaser, type and kind. A program has as many types as it likes, so
        what has no series of its own is told apart by kind alone.
        """
        if not self._limit:
            return {}
        known, self._processes = self._processes, {}
        shown = {}
        for seen in observations:
            if seen.totals is None or seen.invalid:
                continue
            pid = seen.process.pid
            places = known.get(pid)
            # A process may have replaced its program, or have another's number.
            if places is None or places.since_ns != seen.since_ns:
                places = _Places(seen.since_ns, self._limit, self._application)
            self._processes[pid] = places
            places.enter(wait for thread in seen.totals.threads for wait in thread.waits)
            shown[pid] = places.shown(seen.totals.at_ns)
        return shown


class _Places:
    """Those of one process."""

    def __init__(self, since_ns: int, limit: int, application: Application) -> None:
        self.since_ns = since_ns
        self._application = application
        self._names = SiteNames()
        self._totals = Ledger(())
        self._slots = TopSeries(self._totals, limit, width=3)

    def enter(self, waits: Iterable[LockWait]) -> None:
        """Take over *waits* as they are now; what is no contention is left out."""
        contended = [wait for wait in waits if wait.kind.is_contention]
        keys = [(id(wait.stack), id(wait.released), wait.kind, wait.type) for wait in contended]
        tallies = [Tally(wait.wait_ns, wait.waits) for wait in contended]
        self._totals.update(keys, tallies, contended, self._named)

    def shown(self, at_ns: int) -> tuple[Shown, ...]:
        """Return what the series show."""
        return self._slots.shown(at_ns)

    def _named(self, wait: LockWait) -> tuple[Labels, Labels]:
        waiter = self._names.owner(application_frame(wait.stack, self._application), wait.stack)
        releaser = _NOBODY
        if wait.released.is_known:
            frame = application_frame(wait.released, self._application)
            releaser = self._names.owner(frame, wait.released)
        return (waiter, releaser, wait.type or ""), (wait.kind.value,)
