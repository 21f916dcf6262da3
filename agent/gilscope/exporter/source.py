"""Where the figures of a scrape come from."""

from collections.abc import Callable, Sequence

from gilscope.model.agent import AgentState
from gilscope.model.gil import Refusal
from gilscope.model.observation import Observation
from gilscope.stm_log.sums import FollowedLog
from gilscope.values import dataclass

__all__ = ["Logs", "Source"]


Logs = Callable[[], Sequence[FollowedLog]]
"""Returns what is known of the STM logs that are followed."""


@dataclass(frozen=True, slots=True)
class Source:
    """Functions that say what is known now. Any thread may call them."""

    agent_state: Callable[[], AgentState]
    """Returns the state of the agent itself; raises OSError."""
    observe: Callable[[], Sequence[Observation]] = tuple
    """Returns the state of every traced process."""
    refusals: Callable[[], Sequence[Refusal]] = tuple
    """Returns the Pythons that were found and cannot be traced."""
    bcc_version: str = ""
    """Of what compiled the probes; empty: none are used."""
