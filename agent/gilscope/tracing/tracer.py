"""Traces processes, and keeps an account of each thing that is measured in them."""

import time
from collections.abc import Collection
from collections.abc import Set as AbstractSet

from gilscope.errors import NoGil, NotPython, UnsupportedPython
from gilscope.gil.tracing.account import GilAccount
from gilscope.locks.account import LockAccount
from gilscope.model.observation import AnyProcess, Observation
from gilscope.model.transactions import Library
from gilscope.process.access import while_alive
from gilscope.process.attachment import Retention
from gilscope.process.view import view_of
from gilscope.process.watch import ProcessWatch
from gilscope.transactions.account import TransactionAccount

__all__ = ["Tracer"]


class Tracer:
    """The processes that are being traced. Its methods may be called from several threads.

    A process is attached to by the first account that can: a Python with a GIL by *gils*, any
    other program with transactions by *transactions*. Locks are traced by *locks* in whatever has a
    GIL, and in a Python that does without.
    """

    def __init__(
        self,
        gils: GilAccount,
        transactions: TransactionAccount | None = None,
        watch: ProcessWatch | None = None,
        locks: LockAccount | None = None,
    ) -> None:
        """Keep these accounts. *watch*, which they share, is closed with them."""
        self.gils = gils
        self.transactions = transactions
        self.locks = locks
        self._watch = watch
        self._others = tuple(each for each in (transactions, locks) if each is not None)
        self._accounts = (gils, *self._others)
        self._observed_ns = 0
        """When `observe` was called last; who has ended before was told as such."""

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are traced and have not ended."""
        return frozenset(pid for account in self._accounts for pid in account.pids)

    def traces(self, pid: int) -> bool:
        """Return whether *pid* is traced and has not ended."""
        return any(account.traces(pid) for account in self._accounts)

    @property
    def traps(self) -> int:
        """How often any process has run into a probe so far."""
        return sum(account.traps for account in self._accounts)

    def attach(self, pid: int, libraries: Collection[Library] = tuple(Library)) -> AnyProcess:
        """Begin to trace *pid*, and return what it is; transactions are those of *libraries*.

        Raises what the accounts' `attach` raise. What is neither is
        refused as a Python.
        """
        try:
            found = self.gils.attach(pid).process
        except NoGil:
            if self.locks is None:
                raise
            return self.locks.attach(pid)
        except (NotPython, UnsupportedPython):
            # PyPy-STM is a Python whose GIL is not known, for it has none.
            if self.transactions is None:
                raise
            with while_alive(pid):
                view = view_of(pid)
            target = self.transactions.find(view, libraries)
            if target is None:
                raise
            self.transactions.attach(target, view)
            return target.process
        if self.locks is not None:
            self.locks.attach_beside(found)
        return found

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        for account in self._accounts:
            account.drop(pid)

    def drop_ended(self, kept_s: float, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended *kept_s* ago or earlier.

        One whose end no `observe` has told is kept for longer. One whose probes could not be
        trusted may be kept for as long as it is *alive*.
        """
        retention = Retention(kept_s, self._observed_ns)
        for account in self._accounts:
            account.drop_ended(retention, alive)

    def tick(self) -> list[int]:
        """Look after all processes; return those that have replaced their program.

        To be called a few times a second; whatever was missed in between is made up for.
        """
        # Those with a GIL hear of every new program, and of one that another account has attached
        # meanwhile they know nothing: it is no older than that. So it is with a Python that has
        # turned out to do without a GIL, and whose locks are traced.
        replaced = [pid for pid in self.gils.tick() if not self.runs_the_same(pid)]
        for account in self._others:
            replaced += account.tick()
        return replaced

    @property
    def forks(self) -> int:
        """How often a process that is traced has forked, as far as `tick` has heard of it."""
        return sum(account.forks for account in self._accounts)

    def runs_the_same(self, pid: int) -> bool:
        """Return whether *pid* is traced and still runs the program that was attached."""
        return any(account.runs_the_same(pid) for account in self._accounts)

    def wait(self, timeout_s: float) -> None:
        """Wait until `tick` has something to do, *timeout_s* at the most."""
        self.gils.wait(timeout_s)

    def observe(self, *, is_final: bool = False) -> list[Observation]:
        """Return what has been counted of every process until now.

        *is_final*: no GIL's waits count any more, and what is in flight counts as if it ended now.
        """
        began_ns = time.monotonic_ns()
        seen = [Observation(gil=each) for each in self.gils.observe(is_final=is_final)]
        if self.transactions is not None:
            seen += [Observation(transactions=each) for each in self.transactions.observe()]
        if self.locks is not None:
            seen += [Observation(locks=each) for each in self.locks.observe()]
        self._observed_ns = began_ns
        return seen

    def close(self) -> None:
        """Take the probes out of all processes."""
        for account in self._accounts:
            account.close()
        if self._watch is not None:
            self._watch.close()
