"""What was measured, as plain values."""

from dataclasses import dataclass

__all__ = ["Agent", "Attach", "Machine", "Results", "Run"]


@dataclass(frozen=True, slots=True)
class Agent:
    """What a tool itself used while the workload ran."""

    attach_ns: int
    attach_cpu_ns: int
    """Up to the moment when the probes were in place, children that compile included."""
    cpu_ns: int
    """While the workload ran, with the one scrape at its end."""
    wall_ns: int
    resident_bytes: int
    proportional_bytes: int
    private_bytes: int
    seen: int
    """The events that it counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """One workload under one condition in one round."""

    round: int
    workload: str
    condition: str
    units: int
    """Of each piece."""
    piece_cpu_ns: tuple[int, ...]
    """The CPU time of the target for each of several equal pieces of work."""
    agent: Agent | None
    """None where nothing traced."""


@dataclass(frozen=True, slots=True)
class Attach:
    """One start of ``gilscope serve`` on a process that idles."""

    interpreter: str
    is_cold: bool
    """The sites of the interpreter had not been searched before."""
    attach_ns: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What the numbers hold for."""

    cpu: str
    cpus: int
    is_virtual: bool
    memory_bytes: int
    kernel: str
    system: str
    versions: tuple[tuple[str, str], ...]
    """Name and version of everything that takes part."""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a page is made of."""

    machine: Machine
    date: str
    command: str
    rounds: int
    is_quick: bool
    load_before: float
    """The machine's load average over one minute, before the measurement."""
    stolen: float
    """The share of the CPU time that the hypervisor gave to others meanwhile."""
    interpreter: str
    runs: tuple[Run, ...]
    attaches: tuple[Attach, ...]
    left_out: tuple[tuple[str, str], ...]
    """Title and reason of each condition that could not be measured."""
