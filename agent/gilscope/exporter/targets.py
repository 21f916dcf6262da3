"""The families about what is traced, of each process or of each service."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from gilscope.exporter.gil import add_blame, add_gil, add_roles
from gilscope.exporter.kept_counters import KeptCounters
from gilscope.exporter.locks import add_locks, add_places
from gilscope.exporter.samples import Labels, Rows, Series
from gilscope.exporter.service_sums import ServiceSums
from gilscope.exporter.transactions import add_transactions
from gilscope.metrics import table as metrics
from gilscope.model.gil import GilObservation
from gilscope.model.locks import LockObservation
from gilscope.model.observation import Observation
from gilscope.series.blocking import BlockingSeries
from gilscope.series.by_name.owners import Owner
from gilscope.series.locks.places import LockSeries

__all__ = ["FAMILIES", "Targets", "add_target"]

FAMILIES = tuple(
    family
    for family in metrics.FAMILIES
    if family.labels[: len(metrics.PROCESS_LABELS)] == metrics.PROCESS_LABELS
)
"""Those about processes; logs have series in some of them too."""


class Targets:
    """Makes them, and remembers what services have counted. Whoever asks holds the book's turn."""

    def __init__(self, book: BlockingSeries, kept: KeptCounters | None = None) -> None:
        """Say by *book* whose the series are, and which places have some.

        Counters begin where *kept* says that those of the agent before have ended.
        """
        self._book = book
        self._kept = kept
        self._places = LockSeries(book.limit, book.application, by_service=book.by_service)
        self._services = (
            ServiceSums(add_target, book.owner_of, self._forget) if book.by_service else None
        )

    def noting(
        self, observe: Callable[[], Sequence[Observation]]
    ) -> Callable[[], Sequence[Observation]]:
        """Return *observe*, which also notes what it has seen, so that none of it is lost."""

        def noted() -> Sequence[Observation]:
            with self._book.turn:
                seen = observe()
                if self._services is not None:
                    self._services.note(seen)
                if any(each.has_ended for each in seen):
                    # It may be forgotten by the next scrape.
                    self._book.lately(_gils(seen), 0)
                    self._places.series(_locks(seen))
            return seen

        return noted

    def series(self, seen: Sequence[Observation]) -> Mapping[metrics.Family, Series]:
        """Return all families about what was *seen*."""
        families = {family: Series(family) for family in FAMILIES}
        if self._services is None:
            for each in seen:
                add_target(families, self._book.owner_of(each.process), each)
        else:
            self._services.add_to(families, seen)
        for owner, processes in self._processes(seen).items():
            families[metrics.TARGET_PROCESSES].add(owner, processes)
        gils = _gils(seen)
        for owner, blame in self._book.series(gils).items():
            add_blame(families, owner, blame)
        for owner, roles in self._book.roles(gils).items():
            add_roles(families, owner, roles)
        for owner, places in self._places.series(_locks(seen)).items():
            add_places(families, owner, places)
        if self._kept is not None:
            self._kept.add_to(families)
        return families

    def _forget(self, owners: Collection[Owner]) -> None:
        """Have all counters of *owners* begin at 0."""
        self._book.forget(owners)
        self._places.forget(owners)
        if self._kept is not None:
            self._kept.forget(owners)

    def _processes(self, seen: Iterable[Observation]) -> Mapping[Owner, int]:
        # Whose locks are traced beside its GIL is one process all the same.
        pids: dict[Owner, set[int]] = {}
        for each in seen:
            if each.is_valid:
                alive = pids.setdefault(self._book.owner_of(each.process), set())
                if not each.has_ended:
                    alive.add(each.process.pid)
        return {owner: len(alive) for owner, alive in pids.items()}


def _gils(seen: Iterable[Observation]) -> list[GilObservation]:
    return [each.gil for each in seen if each.gil is not None]


def _locks(seen: Iterable[Observation]) -> list[LockObservation]:
    return [each.locks for each in seen if each.locks is not None]


def add_target(families: Mapping[metrics.Family, Rows], labels: Labels, seen: Observation) -> None:
    """Add to *families* what was *seen* of one process, whose series have *labels*."""
    if seen.gil is not None:
        add_gil(families, labels, seen.gil)
    if seen.transactions is not None:
        add_transactions(families, labels, seen.transactions)
    if seen.locks is not None:
        add_locks(families, labels, seen.locks)
