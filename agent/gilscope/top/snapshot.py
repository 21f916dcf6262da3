"""What one snapshot of the traced processes has found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gilscope.model.agent import AgentState
from gilscope.model.gil import Observation, Refusal
from gilscope.top.rates import ProcessRates, rates

__all__ = ["NOTHING", "Snapshot", "Source", "take_snapshot"]


class Source(Protocol):
    """Where the figures come from. Its methods are not called from the thread that draws."""

    def observe(self) -> Sequence[Observation]:
        """Return the state of every traced process now."""

    def refusals(self) -> Sequence[Refusal]:
        """Return the Pythons that were found and cannot be traced."""

    def agent_state(self) -> AgentState:
        """Return the state of the agent itself now."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The traced processes at one instant, and what they have done since the snapshot before."""

    observations: Sequence[Observation] = ()
    processes: tuple[ProcessRates, ...] = ()
    refusals: Sequence[Refusal] = ()
    agent: AgentState | None = None
    """None: nobody has looked yet."""
    cpu_share: float | None = None
    """CPU time of the agent by the time that has passed; None: none has."""


NOTHING = Snapshot()


def take_snapshot(source: Source, before: Snapshot) -> Snapshot:
    """Return what *source* says now, compared with *before*; raises what *source* raises."""
    observations = source.observe()
    agent = source.agent_state()
    running_ns = agent.running_ns - (before.agent.running_ns if before.agent else 0)
    cpu_ns = agent.cpu_ns - (before.agent.cpu_ns if before.agent else 0)
    return Snapshot(
        observations=observations,
        processes=rates(before.observations, observations),
        refusals=source.refusals(),
        agent=agent,
        cpu_share=cpu_ns / running_ns if running_ns > 0 else None,
    )
