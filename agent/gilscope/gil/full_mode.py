"""Sees to it that holds are observed as closely as the mode and the budget allow."""

import logging
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from gilscope.cpu_time import process_cpu_ns
from gilscope.errors import GilscopeError, KernelOrBccMissing
from gilscope.gil.calibration import ASSUMED, TrapCosts
from gilscope.gil.governor import Budget, Governor, Grant, Usage
from gilscope.gil.probe import GilProbe
from gilscope.gil.traced import Traced
from gilscope.gil.window import Window, WindowSites
from gilscope.model import Mode, TracingCost

__all__ = ["CONTENTION", "FullMode", "ObservationPlan"]

_log = logging.getLogger(__name__)

_NEVER_NS = 1 << 63
_S = 1_000_000_000

_COLD_CACHES = 1.15
"""A trap costs a real program more than the practice lock, whose memory is always in the caches:
11 to 24 % more were seen."""

_MOST_WINDOWS = 6
"""Open at a time in auto mode, in processes that share a file: the kernel asks all of them at each
trap of each, so that with these a trap costs about twice what it does alone."""
_TURN_NS = 10 * _S
"""So long a window may last where others are waiting for their turn."""

_RECENT_NS = 60 * _S
"""The overhead that is shown is that of the last minute."""
_SAMPLE_NS = 2 * _S
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


@dataclass(frozen=True, slots=True)
class _Crowd:
    """How many processes are probed at the same places of one file."""

    targets: int
    windows: int


@dataclass(frozen=True, slots=True)
class _Prices:
    """What the traps of one process cost it."""

    costs: TrapCosts
    is_stepped: bool

    def full_ns(self, crowd: _Crowd) -> float:
        """Return the cost of a trap at an acquire or release site."""
        alone_ns = self.costs.stepped_ns if self.is_stepped else self.costs.full_ns
        return _COLD_CACHES * (alone_ns + self.costs.sharing_ns * max(0, crowd.windows - 1))

    def contention_ns(self, crowd: _Crowd) -> float:
        """Return the cost of a trap on the contended path."""
        alone_ns = self.costs.stepped_ns if self.is_stepped else self.costs.contention_ns
        return _COLD_CACHES * (alone_ns + self.costs.sharing_ns * max(0, crowd.targets - 1))


@dataclass(slots=True)
class _Account:
    """What tracing costs one process."""

    window: Window | None
    governor: Governor | None
    file: tuple[int, int]
    """What the probes lie in, by device and inode."""
    prices: _Prices
    usage: Usage
    window_traps: int = 0
    waiting_traps: int = 0
    opened_ns: int = 0
    samples: deque[Usage] = field(default_factory=deque)
    """Of the last minute, oldest first."""

    def update(self, traced: Traced, probe: GilProbe, crowd: _Crowd) -> None:
        """Read what the process has used until now; of one that has gone, what is known stays.

        The traps since the last time are taken to have met *crowd*.
        """
        if traced.ended:
            return
        window_traps = 0 if self.window is None else self.window.traps()
        waiting_traps = probe.traps(traced.pid)
        now_ns = time.monotonic_ns()
        unseen = self._unseen_traps(now_ns)
        window_ns = int((window_traps - self.window_traps + unseen) * self.prices.full_ns(crowd))
        waiting_ns = int((waiting_traps - self.waiting_traps) * self.prices.contention_ns(crowd))
        self.window_traps, self.waiting_traps = window_traps, waiting_traps
        cpu_ns = process_cpu_ns(traced.pid)
        self.usage = Usage(
            at_ns=now_ns,
            cpu_ns=self.usage.cpu_ns if cpu_ns is None else cpu_ns,
            cost_ns=self.usage.cost_ns + window_ns + waiting_ns,
            window_cost_ns=self.usage.window_cost_ns + window_ns,
        )
        if self.usage.at_ns - self.samples[-1].at_ns >= _SAMPLE_NS:
            self.samples.append(self.usage)
        while self.samples[0].at_ns < self.usage.at_ns - _RECENT_NS and len(self.samples) > 1:
            self.samples.popleft()

    def _unseen_traps(self, now_ns: int) -> float:
        """Return how many traps are likely to have come since the last time without being seen.

        A perf event stops its program at once, but takes up to a second to take the breakpoint out.
        """
        window = self.window
        if window is None or not window.closes_unseen:
            return 0.0
        if window.is_open or window.can_open:
            return 0.0
        return window.traps_per_ns * (now_ns - self.usage.at_ns)

    def cost(self) -> TracingCost:
        """Return the cost until now and that of the last minute."""
        first = self.samples[0]
        cost_ns = self.usage.cost_ns - first.cost_ns
        own_ns = self.usage.cpu_ns - first.cpu_ns - cost_ns
        return TracingCost(
            overhead_ns=self.usage.cost_ns,
            recent_ratio=cost_ns / own_ns if own_ns > 0 else 0.0,
            traps=self.window_traps + self.waiting_traps,
        )


class FullMode:
    """The windows of all traced processes, and what tracing costs them."""

    def __init__(self, probe: GilProbe, plan: ObservationPlan) -> None:
        """Observe by *plan*."""
        self._probe = probe
        self._plan = plan
        self._random = Random()  # noqa: S311 - nobody has to be kept from guessing
        self._accounts: dict[int, _Account] = {}
        self._look_again_ns = _NEVER_NS
        self._forgotten_traps = 0
        self._refused_ns: dict[tuple[int, int], int] = {}
        """When there was no room for a window, by file."""

    @property
    def traps(self) -> int:
        """How often any process has run into a probe, as far as it has been read."""
        return self._forgotten_traps + sum(
            account.cost().traps for account in self._accounts.values()
        )

    @property
    def trap_costs(self) -> TrapCosts:
        """What a trap is taken to cost."""
        return self._plan.costs

    @property
    def due_ns(self) -> int:
        """When `step` wants to be called at the latest, CLOCK_MONOTONIC."""
        # Asked without the lock that guards the rest.
        governors = (account.governor for account in tuple(self._accounts.values()))
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
        account = _Account(
            window=traced.window,
            governor=None,
            file=target.file.identity,
            prices=_Prices(costs, target.is_stepped),
            usage=Usage(time.monotonic_ns(), process_cpu_ns(traced.pid) or 0, 0, 0),
        )
        account.samples.append(account.usage)
        self._accounts[traced.pid] = account
        if traced.window is None:
            return
        self.learn_locks(traced)
        if self._plan.mode is Mode.FULL:
            traced.window.open()
        else:
            account.governor = Governor(Budget(self._plan.budget_share), self._random)

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
        account = self._accounts.get(traced.pid)
        if account is not None:
            account.update(traced, self._probe, self._crowd(account.file))
            account.governor = None
        if traced.window is not None:
            self._probe.await_closing(traced.pid, traced.window.close())

    def forget(self, pid: int) -> None:
        """Drop what is known of process *pid*."""
        account = self._accounts.pop(pid, None)
        if account is not None:
            self._forgotten_traps += account.cost().traps

    def cost(self, traced: Traced) -> TracingCost | None:
        """Return what tracing costs *traced*, by the costs of a trap on this machine."""
        account = self._accounts.get(traced.pid)
        if account is None:
            return None
        account.update(traced, self._probe, self._crowd(account.file))
        return account.cost()

    def _crowd(self, file: tuple[int, int]) -> _Crowd:
        here = [account for account in self._accounts.values() if account.file == file]
        windows = sum(1 for each in here if each.window is not None and each.window.is_open)
        return _Crowd(len(here), windows)

    def _step(self, traced: Traced, *, at_once: bool = False) -> None:
        account = self._accounts[traced.pid]
        window, governor = account.window, account.governor
        if window is None or governor is None:
            return
        window.settle()
        if window.is_lingering:
            self._look_again_ns = time.monotonic_ns() + _CLOSING_LOOK_NS
        if not at_once and time.monotonic_ns() < governor.due_ns:
            return
        crowd = self._crowd(account.file)
        if window.has_used_up or self._must_make_room(account, crowd):
            window.end()
        account.update(traced, self._probe, crowd)
        grant = governor.step(account.usage, is_open=window.is_open)
        if grant is None:
            window.end()
        elif window.is_open:
            window.allow(_traps(grant, account.prices.full_ns(crowd)))
        elif crowd.windows >= _MOST_WINDOWS:
            self._refused_ns[account.file] = time.monotonic_ns()
        elif window.can_open:
            self._open(account, window, _traps(grant, account.prices.full_ns(crowd)))

    def _must_make_room(self, account: _Account, crowd: _Crowd) -> bool:
        now_ns = time.monotonic_ns()
        has_had_its_turn = now_ns - account.opened_ns >= _TURN_NS
        are_others_waiting = now_ns - self._refused_ns.get(account.file, -_TURN_NS) < _TURN_NS
        return has_had_its_turn and are_others_waiting and crowd.windows >= _MOST_WINDOWS

    def _open(self, account: _Account, window: Window, traps: int) -> None:
        try:
            window.open(traps)
        except (GilscopeError, OSError) as error:
            # Most likely the process has just ended; if not, its holds are seen less often.
            _log.debug("no window: %s", error)
        else:
            account.opened_ns = time.monotonic_ns()


def _traps(grant: Grant, trap_ns: float) -> int:
    return max(1, int(grant.allowance_ns / trap_ns))
