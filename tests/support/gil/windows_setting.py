"""One process of the lock model, its probe and its governor, for tests of full mode."""

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from gilscope.budget.governor import Budget, Grant, Usage
from gilscope.budget.pace import Pace
from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.tracing import overhead, process_windows
from gilscope.gil.tracing import windows as windows_module
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.tracing.windows import Windows
from gilscope.model.gil import Gil
from gilscope.model.kinds import Mode
from support.gil.lock_model import COND, OTHER_COND, PID, Process

__all__ = [
    "AUTO",
    "COLD",
    "CONTENDED",
    "COSTS",
    "FULL",
    "MS",
    "S",
    "Setting",
    "grant",
    "price",
    "target",
]

MS = 1_000_000
S = 1_000_000_000
COLD = 1.15
CONTENDED = 2.6
COSTS = TrapCosts(
    full_ns=1000.0,
    stepped_ns=20_000.0,
    contention_ns=2000.0,
    inside_hold_ns=500,
    inside_stepped_hold_ns=9_000,
    sharing_ns=100.0,
    is_measured=True,
)
AUTO = ObservationPlan(Mode.AUTO, 0.02, COSTS)
FULL = ObservationPlan(Mode.FULL, costs=COSTS)


class _Governor:
    """Decides as the test has put down, and keeps what it was asked with."""

    def __init__(self) -> None:
        self.due_ns = 0
        self.is_over_budget = False
        self.processes_per_window = 1.0
        self.is_endless = False
        self.decisions: list[Grant | None] = []
        self.asked: list[tuple[Usage, bool]] = []
        self.budget: Budget | None = None

    def made(self, budget: Budget, _random: Random, _pace: Pace) -> "_Governor":
        self.budget = budget
        return self

    def step(self, usage: Usage, *, is_open: bool) -> Grant | None:
        self.asked.append((usage, is_open))
        return self.decisions.pop(0)


class _Probe:
    """What full mode asks of the probe."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.contention_traps = 0
        self.spent_on_stacks_ns = 0
        self.stack_shares: list[float] = []
        self.sites: WindowSites | None = None
        self.awaited: list[Future[None]] = []
        self.refusal: Exception | None = None
        self.lapses = 0
        self.beats = 0

    def beat(self) -> None:
        self.beats += 1

    def window(self, pid: int, sites: WindowSites, reader: object) -> Window:
        assert (PID, self.process) == (pid, reader)
        self.sites = sites
        return self.process.window

    def walking_ns(self, pid: int) -> int:
        assert PID == pid
        return self.spent_on_stacks_ns

    def read_stacks_of(self, pid: int, share: float) -> None:
        assert PID == pid
        self.stack_shares.append(share)

    def traps(self, pid: int) -> int:
        assert PID == pid
        return self.contention_traps

    def add_other_lock(self, pid: int, cond: int, window: Window) -> None:
        assert (PID, OTHER_COND, self.process.window) == (pid, cond, window)
        if self.refusal is not None:
            raise self.refusal
        self.process.add_lock()

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None:
        assert PID == pid
        self.awaited += closing


def target(inode: int = 2, build_id: str = "") -> SimpleNamespace:
    """Return a target as far as full mode samples at one; *inode* is that of its file."""
    file = SimpleNamespace(identity=(1, inode))
    return SimpleNamespace(
        acquires=("T",),
        releases=("R",),
        is_stepped=False,
        # So that its waits are never seen in windows.
        process=SimpleNamespace(method="libc"),
        file=file,
        build=SimpleNamespace(file=file, build_id=build_id),
    )


class Setting:
    """One process of the lock model, its probe, and full mode with a clock that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.process = Process(monkeypatch)
        self.probe = _Probe(self.process)
        self.cpu_ns: int | None = 0
        self.cpu_reads = 0
        self.governor = _Governor()
        for module in (windows_module, overhead):
            monkeypatch.setattr(module, "time", self.process)
            monkeypatch.setattr(module, "process_cpu_ns", self._read_cpu_ns)
        monkeypatch.setattr(process_windows, "time", self.process)
        monkeypatch.setattr(windows_module, "Governor", self.governor.made)
        # What may wait for others is looked at whenever somebody asks.
        monkeypatch.setattr(windows_module, "_BEAT_NS", (0, 0))
        self.target = target()
        self.fields = SimpleNamespace(
            pid=PID,
            target=self.target,
            hooks=tuple,
            runtime=SimpleNamespace(locks=self.process),
            gils={COND: Gil(COND, 0)},
            ended=False,
            wait_window=None,
            window=None,
            blame=None,
        )
        self.traced = cast("AttachedProcess", self.fields)

    def _read_cpu_ns(self, pid: int) -> int | None:
        assert PID == pid
        self.cpu_reads += 1
        return self.cpu_ns

    def begun(self, plan: ObservationPlan) -> Windows:
        """Return full mode that has taken on the process."""
        made = Windows(cast("GilProbe", self.probe), plan)
        made.begin(self.traced)
        return made

    def works(self, ms: int, *, holds: int = 0, contention_traps: int = 0) -> None:
        """Let the process run for a while on one core."""
        self.process.passes(ms * MS)
        if self.cpu_ns is not None:
            self.cpu_ns += ms * MS
        for _ in range(holds):
            self.process.take(7)
            self.process.release()
        self.probe.contention_traps += contention_traps


def grant(traps: int) -> Grant:
    """Return what pays for so many traps at the usual price."""
    # A bit more, so that rounding does not matter.
    return Grant(allowance_ns=int(traps * COLD * COSTS.full_ns) + 1, until_ns=None)


def price(traps: int, ns: float, factor: float = COLD) -> int:
    """Return what so many traps of *ns* cost, in nanoseconds."""
    return int(traps * (factor * ns))
