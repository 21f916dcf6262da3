"""Sees to it that processes are observed as closely as the mode and the budget allow."""

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final

from gilscope.bpf.uprobes.keeper import LEASE_S
from gilscope.budget.governor import Budget, Governor, Usage
from gilscope.budget.pace import Pace
from gilscope.budget.prices import Prices
from gilscope.budget.stack_sampling import StackSampling
from gilscope.budget.trap_costs import TrapCosts
from gilscope.budget.wait_share import WaitShare
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.tracing.overhead import CostAccount
from gilscope.gil.tracing.probed_files import ProbedFiles
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.tracing.process_windows import NEVER_NS, ProcessWindows
from gilscope.gil.waits.policy import Counted, ProcessWaits
from gilscope.gil.waits.split import Sharer, SharingGoesOn, split
from gilscope.gil.waits.window import Parts
from gilscope.model.gil import TracingCost
from gilscope.model.kinds import Mode
from gilscope.process.cpu_time import process_cpu_ns
from gilscope.process.procfs import list_tids

__all__ = ["Windows"]

_log = logging.getLogger(__name__)

_S: Final = 1_000_000_000

_BEAT_NS = (_S // 4, 3 * _S // 4)
"""Between two checks of whatever may wait, drawn anew each time. A wake-up costs much more than a
check, so that all processes share them; what ends a window does not wait."""


_MOST_WAITS: Final = {True: 0.5, False: 0.12}
"""Of the time that windows of waits may cover, by whether probes are links: between two of them
there is more than it takes to take the probes out, which is up to a second for perf events."""


class Windows:
    """The windows of all traced processes, of holds and of waits, and what tracing costs them."""

    def __init__(self, probe: GilProbe, plan: ObservationPlan) -> None:
        """Observe by *plan*."""
        self._probe = probe
        self._plan = plan
        self._random = Random()  # noqa: S311 - nobody has to be kept from guessing
        self.read_counts: Callable[[], object] = lambda: None
        """Called before what is counted stands for something else than before."""
        self._pace = Pace()
        self._watched: dict[int, ProcessWindows] = {}
        self._files = ProbedFiles()
        self._beat_ns = 0
        """Before this only windows that must end are checked."""
        self._known_lapses = 0
        self._forgotten_traps = 0
        self._ending: list[ProcessWindows] = []
        """Those with a window that must be ended at some time."""
        self._end_ns = self._wanted_ns = NEVER_NS
        """When the first of these must, and when something else may be due in any process. So that
        nobody has to ask a thousand of them, some ten times a second, whether it is."""

    @property
    def traps(self) -> int:
        """How often any process has run into a probe, as far as it has been read."""
        return self._forgotten_traps + sum(
            watched.account.traps for watched in self._watched.values()
        )

    @property
    def trap_costs(self) -> TrapCosts:
        """What a trap is taken to cost."""
        return self._plan.costs

    @property
    def due_ns(self) -> int:
        """When `step` wants to be called at the latest, CLOCK_MONOTONIC."""
        # Asked without the lock that guards the rest.
        return min(self._end_ns, max(self._wanted_ns, self._beat_ns))

    def begin(self, traced: AttachedProcess) -> None:
        """Take on a process whose contended path has just been probed; raises as that does."""
        costs, target = self._plan.costs, traced.target
        if target.acquires and self._plan.mode is not Mode.CONTENTION:
            inside_ns = costs.inside_stepped_hold_ns if target.is_stepped else costs.inside_hold_ns
            sites = WindowSites(
                traced.hooks(target.acquires), traced.hooks(target.releases), inside_ns
            )
            traced.window = self._probe.window(traced.pid, sites, traced.runtime.locks)
        usage = Usage(time.monotonic_ns(), process_cpu_ns(traced.pid) or 0, 0, 0)
        prices = Prices(costs, target.is_stepped)
        file = self._files.join(traced)
        account = CostAccount(traced.window, prices, usage)
        watched = ProcessWindows(traced, account, traced.window, file, self._probe)
        self._watched[traced.pid] = watched
        budget = Budget(self._plan.budget_share)
        if traced.blame is not None:
            watched.stack_share = 1.0
            if self._plan.mode is Mode.AUTO:
                watched.sampling = StackSampling(budget, usage)
        if self._may_leave_waits_out(traced):
            traced.wait_window = self._probe.wait_window(
                traced.pid,
                traced.hooks(target.hookpoints),
                Parts(lambda: tuple(traced.gils), partial(_tids, traced.pid)),
            )
            watched.split = self._split
            watched.waits = ProcessWaits(
                traced.pid,
                traced.wait_window,
                traced.scaled,
                WaitShare(budget, usage, most=_MOST_WAITS[self._probe.features.uprobe_links]),
                self._random,
                Counted(
                    self.read_counts,
                    partial(self._probe.seen_wait_ns, traced.pid),
                    partial(self._probe.ended_waits, traced.pid),
                    lambda: self._probe.keeper_losses,
                ),
            )
        if traced.window is not None:
            self._begin_windows(traced, traced.window, watched, budget)
        watched.note_due()
        self._note_due([*self._ending, watched], is_all=False)

    def _may_leave_waits_out(self, traced: AttachedProcess) -> bool:
        """Return whether the waits of *traced* may be seen in windows, if they cost too much."""
        return (
            self._plan.mode is Mode.AUTO
            and not self._plan.sees_all_waits
            and traced.target.process.method == "sites"
            and not traced.runtime.probe_records()
        )

    def _split(self, traced: AttachedProcess) -> bool:
        """Let all that share the probes of *traced* have their own; return whether they do."""
        together = self._probe.shares_with(traced.pid)
        sharing = [each.traced for each in self._watched.values() if each.traced.pid in together]
        sharers = [
            Sharer(each.pid, each.hooks(each.target.hookpoints), each.wait_window)
            for each in sharing
        ]
        try:
            split(self._probe, traced.pid, sharers)
        except SharingGoesOn as reason:
            _log.warning(
                "process %d: to see all its waits costs more than the overhead budget, and they "
                "are all seen: %s",
                traced.pid,
                reason,
            )
            return False
        for each in sharing:
            each.shares_probes = False
        return True

    def _begin_windows(
        self, traced: AttachedProcess, window: Window, watched: ProcessWindows, budget: Budget
    ) -> None:
        self.learn_locks(traced)
        if self._plan.mode is Mode.FULL:
            window.open()
            watched.file.open_in.add(traced.pid)
        else:
            watched.governor = Governor(budget, self._random, self._pace)

    def learn_locks(self, traced: AttachedProcess) -> None:
        """Let the window count the locks that have been found since."""
        window = traced.window
        if window is None or len(traced.gils) <= 1:
            return
        first_cond = window.first_cond
        if not first_cond:
            return  # the probes will learn it from the first acquisition
        for cond in traced.gils.keys() - window.other_slots.keys() - {first_cond}:
            try:
                self._probe.add_other_lock(traced.pid, cond, window)
            except KernelOrBccMissing as error:
                # Its takes are counted as lost.
                _log.debug("%s", error)

    def step(self) -> None:
        """Open and end the windows that are due."""
        self._probe.beat()
        if self._probe.lapses != self._known_lapses:
            self._known_lapses = self._probe.lapses
            self._end_lapsed()
        now_ns = time.monotonic_ns()
        is_beat = now_ns >= self._beat_ns
        if is_beat:
            self._pace.processes = sum(each.takes_turns for each in self._watched.values())
            self._beat_ns = now_ns + int(self._random.uniform(*_BEAT_NS))
        for watched in self._watched.values() if is_beat else self._ending:
            if watched.due_ns <= now_ns:
                watched.step(now_ns, is_beat=is_beat)
                watched.note_due()
        self._note_due(self._watched.values() if is_beat else self._ending, is_all=is_beat)

    def learn(self, traced: AttachedProcess) -> None:
        """React to the notice that something has come to its end in the window of *traced*."""
        watched = self._watched.get(traced.pid)
        if watched is not None:
            watched.learn()
            watched.note_due()
            self._note_due([*self._ending, watched], is_all=False)

    def end(self, traced: AttachedProcess) -> None:
        """Take the window's probes out of a process, which is not observed any more."""
        watched = self._watched.get(traced.pid)
        if watched is not None:
            watched.end()
            watched.note_due()
        if traced.window is not None:
            self._probe.await_closing(traced.pid, traced.window.close())
        if traced.wait_window is not None:
            self._probe.await_closing(traced.pid, traced.wait_window.closing)

    def forget(self, pid: int) -> None:
        """Drop what is known of process *pid*."""
        watched = self._watched.pop(pid, None)
        if watched is not None:
            self._forgotten_traps += watched.account.traps
            self._files.leave(watched.traced, watched.file)

    def cost(self, traced: AttachedProcess) -> TracingCost | None:
        """Return what tracing costs *traced*, by the costs of a trap on this machine."""
        watched = self._watched.get(traced.pid)
        return None if watched is None else watched.cost()

    def _note_due(self, watched: Iterable[ProcessWindows], *, is_all: bool) -> None:
        """Note when something is due in *watched*: those that end, and may be all there are."""
        asked = tuple(watched)
        self._ending = [each for each in dict.fromkeys(asked) if each.end_ns != NEVER_NS]
        self._end_ns = min((each.end_ns for each in self._ending), default=NEVER_NS)
        wanted_ns = min((each.wanted_ns for each in asked), default=NEVER_NS)
        # What was due in others still is; at the next beat it is asked of all again.
        self._wanted_ns = wanted_ns if is_all else min(self._wanted_ns, wanted_ns)

    def _end_lapsed(self) -> None:
        _log.warning(
            "gilscope could not run for %.0f s or more; windows were closed, and holds not seen "
            "meanwhile",
            LEASE_S,
        )
        for watched in self._watched.values():
            watched.end_lapsed()
            watched.note_due()


def _tids(pid: int) -> tuple[int, ...]:
    try:
        return list_tids(pid)
    except OSError:
        return ()  # it has ended
