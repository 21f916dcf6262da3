"""The workloads whose CPU time is measured, and how much of each is one piece."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FIGHT", "FIGHT_OFTEN", "IDLE", "MIXED", "TIGHT", "WORKS", "Work"]

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
    """So many take about 0.3 s of CPU time on a machine of today."""
    has_waits: bool
    """Threads wait for the GIL in it."""
    takes_once_a_unit: bool = False


TIGHT = Work(
    "tight",
    "tight",
    "bench_tight.py",
    "--cycles",
    1_000_000,
    has_waits=False,
    takes_once_a_unit=True,
)
MIXED = Work("mixed", "mixed", "bench_mixed.py", "--units", 34_000, has_waits=True)
FIGHT = Work("fight", "fight", "bench_fight.py", "--units", 34_000, has_waits=True)
FIGHT_OFTEN = Work(
    "fight-often",
    "fight, 0.1 ms",
    str(Path(__file__).with_name("switch_often.py")),
    "--units",
    34_000,
    has_waits=True,
)
WORKS = (TIGHT, MIXED, FIGHT, FIGHT_OFTEN)
