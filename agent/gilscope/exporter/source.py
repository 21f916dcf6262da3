"""Where the figures of a scrape come from."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gilscope.model.agent import AgentState
from gilscope.model.gil import Observation, Refusal
from gilscope.model.transactions import StmObservation
from gilscope.stm_log.sums import FollowedLog

__all__ = ["Logs", "Source"]


Logs = Callable[[], Sequence[FollowedLog]]
"""Returns what is known of the STM logs that are followed."""


class Source(Protocol):
    """Where the figures come from."""

    bcc_version: str

    def observe(self) -> Sequence[Observation]:
        """Return the state of every traced process now."""

    def observe_transactions(self) -> Sequence[StmObservation]:
        """Return the state of every process whose transactions are traced now."""

    def refusals(self) -> Sequence[Refusal]:
        """Return the Pythons that were found and cannot be traced."""

    def agent_state(self) -> AgentState:
        """Return the state of the agent itself now."""
