"""Keeps, for every traced process, what is known by name of who kept whom waiting."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation
from gilscope.series.blocking_account import BlameSeries, BlockingAccount
from gilscope.series.lately import Lately
from gilscope.series.roles import RoleFigures

__all__ = ["DEFAULT_PAIRS", "BlockingSeries", "series_over_time"]

DEFAULT_PAIRS: Final = 50


class BlockingSeries:
    """The books of all processes that are traced. Its methods may be called by several threads.

    An observation that is older than one that was entered already changes nothing. Who holds `turn`
    from before the observation gets figures that are exactly as old as it is.
    """

    def __init__(self, pairs: int = DEFAULT_PAIRS, application: Application = EVERYBODYS) -> None:
        """Give *pairs* pairs of each process series of their own, at most; 0: there are none.

        *application* says which frames are not of libraries.
        """
        self.limit = pairs
        self.application = application
        self.turn = threading.RLock()
        self._accounts: dict[int, BlockingAccount] = {}
        self._at_ns = 0

    def series(self, observations: Iterable[GilObservation]) -> Mapping[int, BlameSeries]:
        """Return what to export of the processes in *observations*, by pid."""
        if not self.limit:
            return {}
        with self.turn:
            return {pid: account.blame() for pid, account in self._entered(observations).items()}

    def roles(
        self, observations: Iterable[GilObservation]
    ) -> Mapping[int, tuple[RoleFigures, ...]]:
        """Return what to export of the thread roles of the processes in *observations*, by pid."""
        with self.turn:
            return {pid: account.roles() for pid, account in self._entered(observations).items()}

    def lately(self, observations: Iterable[GilObservation], most: int) -> Mapping[int, Lately]:
        """Return what the processes in *observations* have lost lately, by pid.

        It has *most* holders, pairs and slow holders of each.
        """
        with self.turn:
            accounts = self._entered(observations)
            return {pid: account.lately(most) for pid, account in accounts.items()}

    def _entered(self, observations: Iterable[GilObservation]) -> dict[int, BlockingAccount]:
        valid = {seen.process.pid: seen for seen in observations if not seen.invalid}
        at_ns = max((seen.totals.at_ns for seen in valid.values()), default=0)
        if at_ns >= self._at_ns:
            self._at_ns = at_ns
            self._accounts = {pid: self._account(pid, seen) for pid, seen in valid.items()}
            for pid, account in self._accounts.items():
                account.enter(valid[pid].totals)
        return {pid: self._accounts[pid] for pid in valid if pid in self._accounts}

    def _account(self, pid: int, seen: GilObservation) -> BlockingAccount:
        account = self._accounts.get(pid)
        if account is None or account.since_ns != seen.since_ns:
            # A process may have replaced its program, or have another's number.
            return BlockingAccount(seen, self.limit, self.application)
        return account


def series_over_time(
    seen: Sequence[GilObservation], application: Application
) -> tuple[BlameSeries, ...]:
    """Return what to export for each snapshot of a recorded process, the last one included."""
    account = BlockingAccount(seen[-1], DEFAULT_PAIRS, application)
    sums = []
    for each in seen:
        account.enter(each.totals)
        sums.append(account.sums())
    return account.over_time(sums)
