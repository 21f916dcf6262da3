"""The agent where it traces no process: it needs no BCC, no rights, and has itself to tell of."""

import time
from dataclasses import dataclass, field

from gilscope.model.agent import AgentState
from gilscope.model.gil import Observation, Refusal
from gilscope.model.transactions import StmObservation
from gilscope.system.log_output import lost_lines
from gilscope.system.memory_usage import read_own_memory

__all__ = ["NoTargets"]


@dataclass(frozen=True, slots=True)
class NoTargets:
    """What a scrape finds where only logs are followed."""

    bcc_version: str = ""
    _since_ns: int = field(default_factory=time.monotonic_ns)

    def observe(self) -> tuple[Observation, ...]:
        """Return nothing."""
        return ()

    def observe_transactions(self) -> tuple[StmObservation, ...]:
        """Return nothing."""
        return ()

    def refusals(self) -> tuple[Refusal, ...]:
        """Return nothing."""
        return ()

    def agent_state(self) -> AgentState:
        """Return the state of the agent's own process now; raises OSError."""
        memory = read_own_memory()
        return AgentState(
            running_ns=time.monotonic_ns() - self._since_ns,
            cpu_ns=time.process_time_ns(),
            sampling_cpu_ns=0,
            resident_bytes=memory.resident_bytes,
            private_bytes=memory.private_bytes,
            traps=0,
            trap_costs_ns={},
            is_measured=False,
            tables=(),
            program_runs=(),
            bpf_misses=None,
            log_lines_lost=lost_lines(),
        )
