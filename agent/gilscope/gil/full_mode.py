"""Sees to it that holds are observed as closely as the mode and the budget allow."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from gilscope.cpu_time import process_cpu_ns
from gilscope.errors import GilscopeError, KernelOrBccMissing
from gilscope.gil.calibration import ASSUMED, TrapCosts
from gilscope.gil.governor import Budget, Governor, Grant, Usage
from gilscope.gil.probe import GilProbe
from gilscope.gil.traced import Traced
from gilscope.gil.tracing_cost import CostAccount, Crowd, Prices
from gilscope.gil.window import Window, WindowSites
from gilscope.model import Mode, TracingCost

__all__ = ["CONTENTION", "FullMode", "ObservationPlan"]

_log = logging.getLogger(__name__)

_NEVER_NS = 1 << 63
_S = 1_000_000_000

_MOST_WINDOWS = 6
"""Open at a time in auto mode, in processes that share a file: the kernel asks all of them at each
trap of each, so that with these a trap costs about twice what it does alone."""
_TURN_NS = 10 * _S
"""So long a window may last where others are waiting for their turn."""

_CLOSING_LOOK_NS = _S // 20
"""So often it is looked whether a hold that has outlasted its window is over."""


@dataclass(frozen=True, slots=True)
class ObservationPlan:
    """How closely processes are observed, and what that may cost them."""

    mode: Mode
    budget_share: float = 0.01
    """Auto mode: of the CPU time that a process uses itself."""
    costs: TrapCosts = ASSUMED


CONTENTION = ObservationPlan(Mode.CONTENTION)


@dataclass(slots=True)
class _Watched:
    """One process, how closely it is watched, and what that costs it."""

    account: CostAccount
    window: Window | None
    governor: Governor | None = None
    opened_ns: int = 0


class FullMode:
    """The windows of all traced processes, and what tracing costs them."""

    def __init__(self, probe: GilProbe, plan: ObservationPlan) -> None:
        """Observe by *plan*."""
        self._probe = probe
        self._plan = plan
        self._random = Random()  # noqa: S311 - nobody has to be kept from guessing
        self._watched: dict[int, _Watched] = {}
        self._look_again_ns = _NEVER_NS
        self._forgotten_traps = 0
        self._refused_ns: dict[tuple[int, int], int] = {}
        """When there was no room for a window, by file."""

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
        governors = (watched.governor for watched in tuple(self._watched.values()))
        due_ns = [governor.due_ns for governor in governors if governor is not None]
        return min(self._look_again_ns, *due_ns, _NEVER_NS)

    def begin(self, traced: Traced) -> None:
        """Take on a process whose contended path has just been probed; raises as that does."""
        costs, target = self._plan.costs, traced.target
        if target.acquires and self._plan.mode is not Mode.CONTENTION:
            inside_ns = costs.inside_stepped_hold_ns if target.is_stepped else costs.inside_hold_ns
            sites = WindowSites(
                traced.hooks(target.acquires), traced.hooks(target.releases), inside_ns
            )
            traced.window = self._probe.window(traced.pid, sites, traced.locks)
        usage = Usage(time.monotonic_ns(), process_cpu_ns(traced.pid) or 0, 0, 0)
        prices = Prices(costs, target.is_stepped)
        account = CostAccount(traced.window, target.file.identity, prices, usage)
        watched = _Watched(account, traced.window)
        self._watched[traced.pid] = watched
        if traced.window is None:
            return
        self.learn_locks(traced)
        if self._plan.mode is Mode.FULL:
            traced.window.open()
        else:
            watched.governor = Governor(Budget(self._plan.budget_share), self._random)

    def learn_locks(self, traced: Traced) -> None:
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

    def step(self, traced: Iterable[Traced]) -> None:
        """Open and end the windows that are due."""
        self._look_again_ns = _NEVER_NS
        for each in traced:
            if not each.ended:
                self._step(each)

    def heed(self, traced: Traced) -> None:
        """React to the notice that something has come to its end in the window of *traced*."""
        if not traced.ended:
            self._step(traced, at_once=True)

    def end(self, traced: Traced) -> None:
        """Take the window's probes out of a process, which is not observed any more."""
        watched = self._watched.get(traced.pid)
        if watched is not None:
            watched.account.update(traced, self._probe, self._crowd(watched.account.file))
            watched.governor = None
        if traced.window is not None:
            self._probe.await_closing(traced.pid, traced.window.close())

    def forget(self, pid: int) -> None:
        """Drop what is known of process *pid*."""
        watched = self._watched.pop(pid, None)
        if watched is not None:
            self._forgotten_traps += watched.account.cost().traps

    def cost(self, traced: Traced) -> TracingCost | None:
        """Return what tracing costs *traced*, by the costs of a trap on this machine."""
        watched = self._watched.get(traced.pid)
        if watched is None:
            return None
        watched.account.update(traced, self._probe, self._crowd(watched.account.file))
        return watched.account.cost()

    def _crowd(self, file: tuple[int, int]) -> Crowd:
        windows = [each.window for each in self._watched.values() if each.account.file == file]
        return Crowd(len(windows), sum(1 for each in windows if each is not None and each.is_open))

    def _step(self, traced: Traced, *, at_once: bool = False) -> None:
        watched = self._watched[traced.pid]
        window, governor, account = watched.window, watched.governor, watched.account
        if window is None or governor is None:
            return
        window.settle()
        if window.is_lingering:
            self._look_again_ns = time.monotonic_ns() + _CLOSING_LOOK_NS
        if not at_once and time.monotonic_ns() < governor.due_ns:
            return
        crowd = self._crowd(account.file)
        if window.has_used_up or self._must_make_room(watched, crowd):
            window.end()
        account.update(traced, self._probe, crowd)
        grant = governor.step(account.usage, is_open=window.is_open)
        if grant is None:
            window.end()
        elif window.is_open:
            allowed = _traps(grant, account.prices.full_ns(crowd))
            window.allow(account.window_traps + allowed)
        elif crowd.windows >= _MOST_WINDOWS:
            self._refused_ns[account.file] = time.monotonic_ns()
        elif window.can_open:
            _open(watched, window, _traps(grant, account.prices.full_ns(crowd)))

    def _must_make_room(self, watched: _Watched, crowd: Crowd) -> bool:
        now_ns = time.monotonic_ns()
        has_had_its_turn = now_ns - watched.opened_ns >= _TURN_NS
        refused_ns = self._refused_ns.get(watched.account.file, -_TURN_NS)
        are_others_waiting = now_ns - refused_ns < _TURN_NS
        return has_had_its_turn and are_others_waiting and crowd.windows >= _MOST_WINDOWS


def _open(watched: _Watched, window: Window, traps: int) -> None:
    try:
        window.open(traps)
    except (GilscopeError, OSError) as error:
        # Most likely the process has just ended; if not, its holds are seen less often.
        _log.debug("no window: %s", error)
    else:
        watched.opened_ns = time.monotonic_ns()


def _traps(grant: Grant, trap_ns: float) -> int:
    return max(1, int(grant.allowance_ns / trap_ns))
