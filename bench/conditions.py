"""What the workloads run under: nothing, gilscope, and what one would use instead of it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers import (
    bpftrace_command,
    py_spy_command,
    samples_printed,
    takes_printed,
    three_probes_command,
)

__all__ = [
    "AGAIN",
    "AUTO",
    "BASELINE",
    "BPFTRACE",
    "CONDITIONS",
    "CONTENTION",
    "DEFAULT",
    "FULL",
    "GILSCOPE",
    "NO_STACKS",
    "PY_SPY",
    "THREE_PROBES",
    "Condition",
    "gilscope_command",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """One row of the tables."""

    key: str
    title: str
    command: Callable[[int, Path], list[str]] | None = None
    """For a pid and the file with the code of the GIL; None: nothing traces."""
    marker: str = ""
    """What it prints when its probes are in place."""
    counts: str = ""
    """What kind of event it counts."""
    printed: Callable[[str], int] | None = None
    """Returns that count from what it prints at its end; None: it serves its figures."""
    budget: float | None = None
    """The share of the target's CPU time that it may use; None: it knows no budget."""

    @property
    def serves(self) -> bool:
        """Whether it is gilscope, which can be asked while it runs."""
        return self.command is not None and self.printed is None

    @property
    def sees_every_take(self) -> bool:
        """Whether it counts takes that nobody waits for."""
        return self.counts == "takes"


def gilscope_command(
    *targets: str, mode: str, budget: float | None = None, stacks: bool = True
) -> list[str]:
    """Return the command that serves figures about *targets*, given as options."""
    options = ["--mode", mode, "--listen", "127.0.0.1:0"]
    if budget is not None:
        options += ["--overhead-budget", _per_cent(budget)]
    if not stacks:
        options.append("--no-stacks")
    return [sys.executable, "-m", "gilscope", "serve", *options, *targets]


def _per_cent(share: float) -> str:
    return f"{100 * share:g}%"


def _gilscope(mode: str, budget: float | None = None) -> Condition:
    def command(pid: int, _library: Path) -> list[str]:
        return gilscope_command("--pid", str(pid), mode=mode, budget=budget)

    shown = "" if budget is None else f" {_per_cent(budget).replace('%', ' %')}"
    return Condition(
        key=mode if budget is None else f"{mode}-{_per_cent(budget)}",
        title=f"gilscope, {mode}{shown}",
        command=command,
        marker="Serving ",
        counts="waits",
        budget=budget,
    )


BASELINE = Condition("none", "nothing")
AGAIN = Condition("none-again", "nothing, again (the noise floor)")
CONTENTION = _gilscope("contention")
NO_STACKS = Condition(
    key="contention-no-stacks",
    title="gilscope, contention without stacks",
    command=lambda pid, _: gilscope_command("--pid", str(pid), mode="contention", stacks=False),
    marker="Serving ",
    counts="waits",
)
AUTO = tuple(_gilscope("auto", budget) for budget in (0.005, 0.01, 0.02))
DEFAULT = AUTO[1]
"""What `gilscope serve` does without options."""
FULL = _gilscope("full")
GILSCOPE = (NO_STACKS, CONTENTION, *AUTO, FULL)
THREE_PROBES = Condition(
    "three-probes",
    "BCC, three probes",
    three_probes_command,
    "Tracing",
    "takes",
    takes_printed,
)
BPFTRACE = Condition(
    "bpftrace",
    "bpftrace, the same three",
    bpftrace_command,
    "Tracing",
    "takes",
    takes_printed,
)
PY_SPY = Condition(
    "py-spy",
    "py-spy --gil, 100 Hz",
    py_spy_command,
    "Sampling process",
    "samples",
    samples_printed,
)
CONDITIONS = (BASELINE, AGAIN, *GILSCOPE, THREE_PROBES, BPFTRACE, PY_SPY)
