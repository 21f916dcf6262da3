"""Keeps, for every traced process, what is known by name of who kept whom waiting."""

import threading
from collections.abc import Iterable, Mapping, Sequence

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation
from gilscope.series.blocking_account import BlockingAccount
from gilscope.series.by_name.blame_series import BlameSeries
from gilscope.series.by_name.owners import Owner, OwnerOf, process_itself, service_of
from gilscope.series.by_name.remembered import Remembered
from gilscope.series.by_name.service_book import ServiceBook
from gilscope.series.lately import Lately
from gilscope.series.pairs import PAIRS_OF_PROCESS, PAIRS_OF_SERVICE
from gilscope.series.roles import RoleFigures

__all__ = ["BlockingSeries", "series_over_time"]


class BlockingSeries:
    """The books of all processes that are traced. Its methods may be called by several threads.

    Series are those of processes or of services. An observation that is older than one that was
    entered already changes nothing. Who holds `turn` from before the observation gets figures that
    are exactly as old as it is.
    """

    def __init__(
        self,
        pairs: int | None = None,
        application: Application = EVERYBODYS,
        *,
        by_service: bool = False,
    ) -> None:
        """Give *pairs* pairs of each process, or service, series of their own, at most.

        None: as many as is usual. With 0 there are none of places at all. *application* says which
        frames are not of libraries. Series are of services if *by_service*.
        """
        usual = PAIRS_OF_SERVICE if by_service else PAIRS_OF_PROCESS
        limit = self.limit = usual if pairs is None else pairs
        self.limit_of_logs = PAIRS_OF_PROCESS if pairs is None else pairs
        """Of the places of each log, which are no process."""
        self.application = application
        self.by_service = by_service
        self.owner_of: OwnerOf = service_of if by_service else process_itself
        """Says whose series those of a process are."""
        self.turn = threading.RLock()
        self._accounts: dict[int, BlockingAccount] = {}
        self._services: Remembered[Owner, ServiceBook] = Remembered(lambda: ServiceBook(limit))
        self._at_ns = 0

    def series(self, observations: Iterable[GilObservation]) -> Mapping[Owner, BlameSeries]:
        """Return what to export of the processes in *observations*, by owner."""
        if not self.limit:
            return {}
        with self.turn:
            books = self._books(observations)
            return {owner: book.blame(self._at_ns) for owner, book in books.items()}

    def roles(
        self, observations: Iterable[GilObservation]
    ) -> Mapping[Owner, tuple[RoleFigures, ...]]:
        """Return what to export of thread roles of the processes in *observations*, by owner."""
        with self.turn:
            books = self._books(observations)
            return {owner: book.role_figures(self._at_ns) for owner, book in books.items()}

    def lately(self, observations: Iterable[GilObservation], most: int) -> Mapping[int, Lately]:
        """Return what the processes in *observations* have lost lately, by pid.

        It has *most* holders, pairs and slow holders of each.
        """
        with self.turn:
            accounts = self._entered(observations)
            return {pid: account.lately(most) for pid, account in accounts.items()}

    def forget(self, owners: Iterable[Owner]) -> None:
        """Forget services of which nobody is left."""
        with self.turn:
            for owner in owners:
                self._services.pop(owner, None)

    def _books(
        self, observations: Iterable[GilObservation]
    ) -> dict[Owner, BlockingAccount | ServiceBook]:
        """Return what has the series of the owners of *observations*."""
        accounts = self._entered(observations).values()
        if not self.by_service:
            return {account.owner: account for account in accounts}
        return {account.owner: self.service(account.owner) for account in accounts}

    def _entered(self, observations: Iterable[GilObservation]) -> dict[int, BlockingAccount]:
        everything = tuple(observations)
        valid = {seen.process.pid: seen for seen in everything if not seen.invalid}
        at_ns = max((seen.totals.at_ns for seen in valid.values()), default=0)
        if at_ns >= self._at_ns:
            self._at_ns = at_ns
            # What cannot be trusted now may be again: a service would gain it once more.
            present = {seen.process.pid for seen in everything}
            kept = {pid: account for pid, account in self._accounts.items() if pid in present}
            self._accounts = kept | {pid: self._account(pid, seen) for pid, seen in valid.items()}
            for pid, seen in valid.items():
                self._accounts[pid].enter(seen.totals)
            if self.by_service and valid:
                self._forget_services(at_ns)
        return {pid: self._accounts[pid] for pid in valid if pid in self._accounts}

    def service(self, owner: Owner) -> ServiceBook:
        """Return the book of a service, begun where it is not known."""
        return self._services[owner]

    def _forget_services(self, at_ns: int) -> None:
        owners = {account.owner for account in self._accounts.values()}
        self._services.forget_absent(owners, at_ns)
        for owner in owners:
            self.service(owner).forget_trifles()

    def _account(self, pid: int, seen: GilObservation) -> BlockingAccount:
        account = self._accounts.get(pid)
        if account is None or account.since_ns != seen.since_ns:
            # A process may have replaced its program, or have another's number.
            owner = self.owner_of(seen.process)
            service = self.service(owner) if self.by_service else None
            return BlockingAccount(seen, owner, self.limit, self.application, service)
        return account


def series_over_time(
    seen: Sequence[GilObservation], application: Application
) -> tuple[BlameSeries, ...]:
    """Return what to export for each snapshot of a recorded process, the last one included."""
    account = BlockingAccount(
        seen[-1], process_itself(seen[-1].process), PAIRS_OF_PROCESS, application
    )
    sums = []
    for each in seen:
        account.enter(each.totals)
        sums.append(account.sums())
    return account.over_time(sums)
