"""Sees to it that holds are observed as closely as the mode and the budget allow."""

import logging
import time
from dataclasses import dataclass, field, replace
from random import Random

from gilscope.bpf.uprobes.keeper import LEASE_S
from gilscope.budget.governor import Budget, Governor, Grant, Usage
from gilscope.budget.prices import Prices, Sharing
from gilscope.budget.stack_sampling import StackSampling
from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.errors import GilscopeError, KernelOrBccMissing
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.tracing.overhead import CostAccount
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import TracingCost
from gilscope.model.kinds import Mode
from gilscope.process import procfs
from gilscope.process.cpu_time import process_cpu_ns

__all__ = ["CONTENTION", "HoldWindows", "ObservationPlan"]

_log = logging.getLogger(__name__)

_NEVER_NS = 1 << 63
_S = 1_000_000_000

_MOST_WINDOWS = 6
"""Open at a time in auto mode, in processes that share a file: the kernel asks all of them at each
trap of each, so that with these a trap costs about twice what it does alone."""
_TURN_NS = 10 * _S
"""So long a window may last where others are waiting for their turn."""

_BEAT_NS = (_S // 4, 3 * _S // 4)
"""Between two looks at whatever may wait, drawn anew each time. A wake-up costs much more than a
look, so that all processes share them; what ends a window does not wait."""


@dataclass(frozen=True, slots=True)
class ObservationPlan:
    """How closely processes are observed, and what that may cost them."""

    mode: Mode
    budget_share: float = 0.01
    """Auto mode: of the CPU time that a process uses itself."""
    costs: TrapCosts = ASSUMED
    held_error: float | None = None
    """By how much held shares may be off after a minute where they are estimated; None: by as
    little as the agent can afford."""
    reads_stacks: bool = True
    """Whether the stacks of both ends of a wait are read when it begins."""


CONTENTION = ObservationPlan(Mode.CONTENTION)


@dataclass(slots=True)
class _Watched:
    """One process, how closely it is watched, and what that costs it."""

    traced: AttachedProcess
    account: CostAccount
    window: Window | None
    file: "_File"
    sampling: StackSampling | None = None
    """None: nothing changes the share of waits whose stacks are read."""
    stack_share: float | None = None
    """That share; None: no stacks are read."""
    governor: Governor | None = None
    opened_ns: int = 0
    until_ns: int = _NEVER_NS
    """When the window that is open must be ended."""
    is_lingering: bool = False
    """Whether a hold that has outlasted its window is followed on."""
    is_warned: bool = False
    """Whether it was said that no window can be opened."""
    is_over_budget: bool = False
    """Whether waits alone cost more than the budget, as was last said."""


@dataclass(slots=True)
class _File:
    """The processes that are probed at the same places."""

    targets: int = 0
    open_in: set[int] = field(default_factory=set)
    """Those with an open window."""
    refused_ns: int = -_TURN_NS
    """When there was no room for a window."""

    @property
    def sharing(self) -> Sharing:
        return Sharing(self.targets, len(self.open_in))


class HoldWindows:
    """The windows of all traced processes, and what tracing costs them."""

    def __init__(self, probe: GilProbe, plan: ObservationPlan) -> None:
        """Observe by *plan*."""
        self._probe = probe
        self._plan = plan
        self._random = Random()  # noqa: S311 - nobody has to be kept from guessing
        self._watched: dict[int, _Watched] = {}
        self._files: dict[object, _File] = {}
        """By what the kernel takes for one file."""
        self._beat_ns = 0
        """Before this only windows that must end are looked at."""
        self._known_lapses = 0
        self._forgotten_traps = 0

    @property
    def traps(self) -> int:
        """How often any process has run into a probe, as far as it has been read."""
        return self._forgotten_traps + sum(
            watched.account.cost().traps for watched in self._watched.values()
        )

    @property
    def trap_costs(self) -> TrapCosts:
        """What a trap is taken to cost."""
        return self._plan.costs

    @property
    def due_ns(self) -> int:
        """When `step` wants to be called at the latest, CLOCK_MONOTONIC."""
        # Asked without the lock that guards the rest.
        end_ns = wanted_ns = _NEVER_NS
        for watched in tuple(self._watched.values()):
            if watched.sampling is not None:
                wanted_ns = min(wanted_ns, watched.sampling.due_ns)
            if watched.governor is not None:
                end_ns = min(end_ns, watched.until_ns)
                wanted_ns = min(wanted_ns, 0 if watched.is_lingering else watched.governor.due_ns)
        return min(end_ns, max(wanted_ns, self._beat_ns))

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
        file = self._files.setdefault(_file_of(traced), _File())
        file.targets += 1
        account = CostAccount(traced.window, prices, usage)
        watched = _Watched(traced, account, traced.window, file)
        self._watched[traced.pid] = watched
        budget = Budget(self._plan.budget_share)
        if traced.blame is not None:
            watched.stack_share = 1.0
            if self._plan.mode is Mode.AUTO:
                watched.sampling = StackSampling(budget, usage)
        if traced.window is None:
            return
        self.learn_locks(traced)
        if self._plan.mode is Mode.FULL:
            traced.window.open()
            file.open_in.add(traced.pid)
        else:
            watched.governor = Governor(budget, self._random)

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
            self._beat_ns = now_ns + int(self._random.uniform(*_BEAT_NS))
        for watched in self._watched.values():
            if is_beat and watched.sampling is not None and watched.sampling.due_ns <= now_ns:
                self._update(watched)
            governor = watched.governor
            if governor is None:
                if is_beat:
                    self._reopen(watched)
                continue
            is_due = is_beat and (governor.due_ns <= now_ns or watched.is_lingering)
            if is_due or watched.until_ns <= now_ns:
                self._step(watched, governor)

    def learn(self, traced: AttachedProcess) -> None:
        """React to the notice that something has come to its end in the window of *traced*."""
        watched = self._watched.get(traced.pid)
        if watched is None or watched.window is None or watched.governor is None:
            return
        if watched.window.has_used_up:
            self._ask(watched, watched.window, watched.governor)
        else:
            watched.window.settle()
        watched.is_lingering = watched.window.is_lingering

    def end(self, traced: AttachedProcess) -> None:
        """Take the window's probes out of a process, which is not observed any more."""
        watched = self._watched.get(traced.pid)
        if watched is not None:
            watched.sampling = None
            self._update(watched)
            watched.governor = None
            watched.file.open_in.discard(traced.pid)
        if traced.window is not None:
            self._probe.await_closing(traced.pid, traced.window.close())

    def forget(self, pid: int) -> None:
        """Drop what is known of process *pid*."""
        watched = self._watched.pop(pid, None)
        if watched is not None:
            self._forgotten_traps += watched.account.cost().traps
            watched.file.targets -= 1
            watched.file.open_in.discard(pid)
            if not watched.file.targets:
                self._files.pop(_file_of(watched.traced), None)

    def cost(self, traced: AttachedProcess) -> TracingCost | None:
        """Return what tracing costs *traced*, by the costs of a trap on this machine."""
        watched = self._watched.get(traced.pid)
        if watched is None:
            return None
        self._update(watched)
        return replace(watched.account.cost(), stack_share=watched.stack_share)

    def _end_lapsed(self) -> None:
        _log.warning(
            "gilscope could not run for %.0f s or more; windows were closed, and holds not seen "
            "meanwhile",
            LEASE_S,
        )
        for watched in self._watched.values():
            if watched.window is None:
                continue
            watched.window.give_up_lingering()
            if watched.window.has_used_up:
                watched.window.end()
                watched.file.open_in.discard(watched.traced.pid)
            watched.is_lingering = watched.window.is_lingering

    def _reopen(self, watched: _Watched) -> None:
        """Full mode: begin a window where one has been closed."""
        window, traced = watched.window, watched.traced
        if window is None or traced.ended or window.is_open:
            return
        window.settle()
        if window.can_open:
            _open(watched, window, None)
            if window.is_open:
                watched.file.open_in.add(traced.pid)

    def _update(self, watched: _Watched) -> None:
        traced, account = watched.traced, watched.account
        account.update(traced, self._probe, watched.file.sharing)
        if traced.ended or watched.sampling is None:
            return
        if watched.sampling.look(account.usage):
            watched.stack_share = watched.sampling.share
            self._probe.read_stacks_of(traced.pid, watched.sampling.share)

    def _step(self, watched: _Watched, governor: Governor) -> None:
        window = watched.window
        if window is None or watched.traced.ended:
            return
        if watched.is_lingering:
            window.settle()
        if min(governor.due_ns, watched.until_ns) <= time.monotonic_ns():
            self._ask(watched, window, governor)
        watched.is_lingering = window.is_lingering

    def _ask(self, watched: _Watched, window: Window, governor: Governor) -> None:
        account, file = watched.account, watched.file
        sharing = file.sharing
        governor.processes_per_window = max(1.0, sharing.targets / _MOST_WINDOWS)
        if sharing.windows >= _MOST_WINDOWS and watched.traced.pid not in file.open_in:
            file.refused_ns = time.monotonic_ns()
            self._update(watched)
            governor.postpone(account.usage)
            return
        if window.has_used_up or _must_make_room(watched):
            window.end()
        self._update(watched)
        grant = governor.step(account.usage, is_open=window.is_open)
        _tell_of_budget(watched, governor)
        watched.until_ns = _NEVER_NS
        if grant is None:
            window.end()
        elif window.is_open:
            allowed = _traps(grant, account.prices.full_ns(sharing))
            window.allow(account.window_traps + allowed)
        elif sharing.windows < _MOST_WINDOWS and window.can_open:
            _open(watched, window, _traps(grant, account.prices.full_ns(sharing)))
        if not window.is_open:
            file.open_in.discard(watched.traced.pid)
            return
        file.open_in.add(watched.traced.pid)
        if grant is not None and grant.until_ns is not None:
            watched.until_ns = grant.until_ns


def _file_of(traced: AttachedProcess) -> object:
    # Each container has a device of its own for the layer that it shares with others, but the
    # kernel hangs all probes on the one file below. A build is in one file, as a rule; where it is
    # in several, a trap is taken to cost more than it does.
    build = traced.target.build
    if traced.target.file == build.file and build.build_id:
        return build.build_id
    return traced.target.file.identity


def _must_make_room(watched: _Watched) -> bool:
    now_ns = time.monotonic_ns()
    has_had_its_turn = now_ns - watched.opened_ns >= _TURN_NS
    are_others_waiting = now_ns - watched.file.refused_ns < _TURN_NS
    is_full = watched.file.sharing.windows >= _MOST_WINDOWS
    return has_had_its_turn and are_others_waiting and is_full


def _open(watched: _Watched, window: Window, traps: int | None) -> None:
    try:
        window.open(traps)
    except (GilscopeError, OSError) as error:
        # Most likely the process has just ended; if not, its holds are seen less often, or never.
        level = logging.DEBUG
        if not watched.is_warned and procfs.is_alive(watched.traced.pid):
            watched.is_warned = True
            level = logging.WARNING
        _log.log(level, "process %d: no window to see holds in: %s", watched.traced.pid, error)
    else:
        watched.opened_ns = time.monotonic_ns()


def _tell_of_budget(watched: _Watched, governor: Governor) -> None:
    """Say so when waits begin to cost more than the budget, and when they no longer do."""
    if governor.is_over_budget == watched.is_over_budget:
        return
    watched.is_over_budget = governor.is_over_budget
    ratio = watched.account.cost().recent_ratio
    _log.warning(
        "process %d: seeing its waits costs more than the overhead budget (%.1f %% in the last "
        "minute); they are all seen, but no holds until that is over"
        if watched.is_over_budget
        else "process %d: tracing is within the overhead budget again (%.1f %%)",
        watched.traced.pid,
        100 * ratio,
    )


def _traps(grant: Grant, trap_ns: float) -> int:
    return max(1, int(grant.allowance_ns / trap_ns))
