"""What the agent knows of itself, as plain values in integer nanoseconds and bytes."""

from collections.abc import Mapping
from dataclasses import field

from gilscope.values import dataclass

__all__ = ["AgentState", "ProgramRuns", "TableState"]


@dataclass(frozen=True, slots=True)
class TableState:
    """One BPF map."""

    name: str
    entries: int | None
    """When it was last read; None: it is not read as a whole."""
    capacity: int | None
    """None: it does not consist of entries."""
    kernel_bytes: int | None
    """None: the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class ProgramRuns:
    """One BPF program, while the kernel kept statistics."""

    name: str
    run_time_ns: int
    runs: int


@dataclass(frozen=True, slots=True)
class AgentState:
    """The agent at one instant. Totals are since its start."""

    running_ns: int
    """How long it has been there."""
    cpu_ns: int
    sampling_cpu_ns: int
    """Part of `cpu_ns`: sampling locks between windows."""
    resident_bytes: int
    private_bytes: int
    traps: int
    """In all processes, those that have ended included."""
    trap_costs_ns: Mapping[str, float]
    """By kind of site."""
    is_measured: bool
    """Whether these costs were measured on this machine, or are assumed."""
    tables: tuple[TableState, ...]
    program_runs: tuple[ProgramRuns, ...]
    """Empty while the kernel keeps no statistics."""
    bpf_misses: int | None
    """Runs that the kernel left out; None: it is too old to count them."""
    log_lines_lost: int = 0
    """What standard error did not take."""
    captures: Mapping[str, int] = field(default_factory=dict)
    """What became of waits that were to be captured, by the name of it; empty: none are."""
