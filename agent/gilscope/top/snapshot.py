"""What one snapshot of the traced processes has found."""

from collections.abc import Sequence

from gilscope.exporter.source import Source
from gilscope.model.agent import AgentState
from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.locks import LockObservation
from gilscope.model.transactions import StmObservation
from gilscope.top.locks.rates import LockRates, lock_rates
from gilscope.top.rates import ProcessRates, rates
from gilscope.top.transactions.rates import StmRates, stm_rates
from gilscope.values import dataclass

__all__ = ["NOTHING", "Snapshot", "take_snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The traced processes at one instant, and what they have done since the snapshot before."""

    observations: Sequence[GilObservation] = ()
    processes: tuple[ProcessRates, ...] = ()
    stm_observations: Sequence[StmObservation] = ()
    transactions: tuple[StmRates, ...] = ()
    """The processes that run transactions, the worst first."""
    lock_observations: Sequence[LockObservation] = ()
    locks: tuple[LockRates, ...] = ()
    """The processes whose locks are traced, beside their GIL or alone, the worst first."""
    refusals: Sequence[Refusal] = ()
    agent: AgentState | None = None
    """None: not read yet."""
    cpu_share: float | None = None
    """CPU time of the agent by the time that has passed; None: none has."""

    @property
    def without_gil(self) -> tuple[LockRates, ...]:
        """Those of `locks` in which nothing but these is traced."""
        others = {each.process.pid for each in self.processes}
        others |= {each.process.pid for each in self.transactions}
        return tuple(each for each in self.locks if each.process.pid not in others)

    def locks_of(self, pid: int) -> LockRates | None:
        """Return those of process *pid*; None: its locks are not traced."""
        return next((each for each in self.locks if each.process.pid == pid), None)


NOTHING = Snapshot()


def take_snapshot(source: Source, before: Snapshot) -> Snapshot:
    """Return what *source* says now, compared with *before*; raises what *source* raises."""
    every = source.observe()
    observations = [seen.gil for seen in every if seen.gil is not None]
    transactions = [seen.transactions for seen in every if seen.transactions is not None]
    locks = [seen.locks for seen in every if seen.locks is not None]
    agent = source.agent_state()
    running_ns = agent.running_ns - (before.agent.running_ns if before.agent else 0)
    cpu_ns = agent.cpu_ns - (before.agent.cpu_ns if before.agent else 0)
    return Snapshot(
        observations=observations,
        processes=rates(before.observations, observations),
        stm_observations=transactions,
        transactions=stm_rates(before.stm_observations, transactions, before.transactions),
        lock_observations=locks,
        locks=lock_rates(before.lock_observations, locks, before.locks),
        refusals=source.refusals(),
        agent=agent,
        cpu_share=cpu_ns / running_ns if running_ns > 0 else None,
    )
