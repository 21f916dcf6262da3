"""The workloads whose CPU time is measured, and how much of each makes one run."""

from dataclasses import dataclass
from pathlib import Path

from bench.conditions import AGAIN, AUTO, CONTENTION, DEFAULT, FULL, NO_STACKS, Condition

__all__ = [
    "CPU",
    "FIGHT",
    "FIGHT_OFTEN",
    "HTTP",
    "IDLE",
    "MIXED",
    "TIGHT",
    "WORKS",
    "Work",
]

IDLE = ("bench_fight.py", "--units", "200")
"""A script and its arguments for a process that is ready to be traced and does nothing."""


@dataclass(frozen=True, slots=True)
class Work:
    """One column of the tables."""

    key: str
    title: str
    script: str
    """A file of tests/workloads, or an absolute path."""
    option: str
    """What sets the units of a piece."""
    units: int
    """Of one piece, the smallest amount that is measured."""
    has_waits: bool
    """Threads wait for the GIL in it."""
    between_s: float
    """How long the untraced runs between the others last, at least."""
    run_s: float
    """How long every other run lasts, at least."""
    auto_s: float
    """How long a run in auto mode lasts, at least: several windows, as rare as they may be; and
    where waits are seen in windows, the time in which a budget is kept."""
    takes_once_a_unit: bool = False
    has_clients: bool = False
    only: tuple[Condition, ...] = ()
    """The conditions that it is measured under; none: all."""

    def seconds(self, condition: Condition) -> float:
        """Return how long a run under *condition* lasts, at least."""
        return self.auto_s if condition in AUTO else self.run_s

    def is_for(self, condition: Condition) -> bool:
        """Return whether it is measured under *condition*."""
        return not self.only or condition in self.only


TIGHT = Work(
    "tight",
    "tight",
    "bench_tight.py",
    "--cycles",
    400_000,
    has_waits=False,
    between_s=1.0,
    run_s=2.0,
    auto_s=12.0,
    takes_once_a_unit=True,
)
MIXED = Work(
    "mixed",
    "mixed",
    "bench_mixed.py",
    "--units",
    28_000,
    has_waits=True,
    between_s=0.7,
    run_s=2.0,
    auto_s=3.5,
)
FIGHT = Work(
    "fight",
    "fight",
    "bench_fight.py",
    "--units",
    28_000,
    has_waits=True,
    between_s=0.7,
    run_s=2.0,
    auto_s=3.5,
)
CPU = Work(
    "cpu",
    "CPU only",
    "bench_cpu.py",
    "--units",
    28_000,
    has_waits=False,
    between_s=0.7,
    run_s=2.0,
    auto_s=3.5,
)
HTTP = Work(
    "http",
    "HTTP server",
    "http_server.py",
    "--units",
    1_000,
    has_waits=True,
    between_s=1.0,
    run_s=2.5,
    auto_s=24.0,
    has_clients=True,
)
FIGHT_OFTEN = Work(
    "fight-often",
    "fight, 0.1 ms",
    str(Path(__file__).with_name("switch_often.py")),
    "--units",
    28_000,
    has_waits=True,
    between_s=0.7,
    run_s=2.0,
    auto_s=24.0,
    only=(AGAIN, NO_STACKS, CONTENTION, DEFAULT, FULL),
)
WORKS = (TIGHT, MIXED, FIGHT, CPU, HTTP, FIGHT_OFTEN)
