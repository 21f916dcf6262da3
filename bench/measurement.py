"""What was measured, as plain values."""

from dataclasses import dataclass

__all__ = [
    "Agent",
    "Attach",
    "Crowd",
    "Failure",
    "Machine",
    "Piece",
    "Results",
    "Run",
    "Scrape",
    "SelfReport",
]


@dataclass(frozen=True, slots=True)
class Piece:
    """One of several equal pieces of work."""

    cpu_ns: int
    """Of the target alone, all its threads."""
    p50_ns: int
    """Latency that the target's clients saw; 0 where there are none."""
    p99_ns: int


@dataclass(frozen=True, slots=True)
class SelfReport:
    """What gilscope said of itself while the workload ran."""

    overhead_ns: int | None
    """Its estimate of the target's CPU time that went into tracing; None: it makes none."""
    observed_ns: int
    """Time in which every hold was followed."""
    elapsed_ns: int
    """Time since attach, in the same span; 0 where no holds are followed at all."""
    holds: int


@dataclass(frozen=True, slots=True)
class Agent:
    """What a tool itself used while the workload ran."""

    attach_ns: int
    attach_cpu_ns: int
    """Up to the moment when the probes were in place, children that compile included."""
    cpu_ns: int
    """While the workload ran, with the scrapes at its beginning and end."""
    wall_ns: int
    resident_bytes: int
    proportional_bytes: int
    private_bytes: int
    seen: int
    """The events that it counted."""
    report: SelfReport | None
    """None for tools that say nothing about themselves."""


@dataclass(frozen=True, slots=True)
class Run:
    """One workload under one condition in one round."""

    round: int
    workload: str
    condition: str
    turn: int
    """Its place in the round: the untraced runs around it have the turns before and behind."""
    units: int
    """Of each piece."""
    pieces: tuple[Piece, ...]
    switches: int
    """How often the target's threads have been taken off a CPU, in all pieces together."""
    agent: Agent | None
    """None where nothing traced."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no figures because its tool failed."""

    round: int
    workload: str
    """Or the crowd, or "attach"."""
    condition: str
    reason: str


@dataclass(frozen=True, slots=True)
class Attach:
    """One start of ``gilscope serve`` on a process that idles."""

    interpreter: str
    is_cold: bool
    """The sites of the interpreter had not been searched before."""
    attach_ns: int


@dataclass(frozen=True, slots=True)
class Start:
    """What goes by first of each start of ``gilscope serve``."""

    python_ns: int
    """Of Python alone."""
    modules_ns: int
    """Of Python and the modules that serving needs."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of ``/metrics``."""

    took_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many processes traced by one agent."""

    key: str
    """What its processes are like: quiet or busy."""
    condition: str
    processes: int
    threads: int
    """Of each process."""
    traced: int
    """How many were traced when the measurement began."""
    attach_ns: int
    """From the start of the agent to the first scrape that shows them all."""
    detach_ns: int
    """From the signal to the end of the agent."""
    cpu_ns: int
    """Of the agent between attach and detach, with its scrapes."""
    threads_cpu_ns: tuple[tuple[str, int], ...]
    """Of these by the name of the thread, of all that are there in the end."""
    wall_ns: int
    targets_cpu_ns: int
    """Of all targets together in the same time."""
    resident_bytes: int
    proportional_bytes: int
    private_bytes: int
    scrapes: tuple[Scrape, ...]
    waits: int
    """Of all targets together; it shows that the agent was at work."""
    holds: int
    lost: tuple[tuple[str, int], ...]
    """Events that could not be counted in full since the start, by reason."""
    ended_well: int
    """How many targets were alive after the agent and ended when they were told."""


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
    took_s: float
    rounds: int
    is_quick: bool
    load_before: float
    """The machine's load average over one minute, before the measurement."""
    stolen: float
    """The share of the CPU time that the hypervisor gave to others meanwhile."""
    interpreter: str
    runs: tuple[Run, ...]
    failures: tuple[Failure, ...]
    attaches: tuple[Attach, ...]
    starts: tuple[Start, ...]
    crowds: tuple[Crowd, ...]
    left_out: tuple[tuple[str, str], ...]
    """Title and reason of what could not be measured."""
