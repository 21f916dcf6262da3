"""Sees to it that processes are observed as closely as the budget allows."""

import logging
import select
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random

from gilscope.budget.governor import Governor
from gilscope.budget.pace import Pace
from gilscope.budget.prices import Prices, Sharing
from gilscope.errors import GilscopeError
from gilscope.model.gil import TracingCost
from gilscope.values import dataclass
from gilscope.windows.cost import WindowCost
from gilscope.windows.plan import WindowPlan
from gilscope.windows.window import ProbeWindow, TrapPrices

__all__ = ["Windows", "has_ended"]

_log = logging.getLogger(__name__)

_NEVER_NS = 1 << 63

PriceList = Callable[[Prices, Sharing], float]
"""What a trap costs: ``Prices.full_ns``, or that on the contended path."""


def has_ended(pidfd: int) -> bool:
    """Return whether the process that *pidfd* stands for has ended; a zombie has."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


@dataclass(slots=True)
class _Watched:
    """One process, and what tracing costs it."""

    pid: int
    pidfd: int
    place: object
    """What those have in common that are probed at the same places."""
    window: ProbeWindow
    cost: WindowCost
    governor: Governor | None = None
    """None: it is observed all the time, or not any more."""
    until_ns: int = _NEVER_NS
    """When the window that is open must be ended."""
    is_over: bool = False
    """Whether it is not observed any more."""
    is_told: bool = False
    """Whether it was said that not everything is seen."""

    @property
    def takes_turns(self) -> bool:
        """Whether windows are opened and ended in it."""
        return self.governor is not None and not self.governor.is_endless

    @property
    def due_ns(self) -> int:
        """When the governor must be asked; never where there is none."""
        return _NEVER_NS if self.governor is None else min(self.governor.due_ns, self.until_ns)


class Windows:
    """The windows of all processes, and what tracing costs them.

    Not for several threads at a time.
    """

    def __init__(self, plan: WindowPlan, what: str, prices: PriceList) -> None:
        """Observe *what*, in words, by *plan*, at *prices*."""
        self._plan = plan
        self._what = what
        self._price_list = prices
        self._random = Random()  # noqa: S311 - nobody has to be kept from guessing
        self._pace = Pace()
        self._watched: dict[int, _Watched] = {}
        self._open_in: dict[object, set[int]] = defaultdict(set)
        """The processes with open windows that are probed at the same places."""
        self._forgotten_traps = 0

    @property
    def has_budget(self) -> bool:
        """Whether there is anything to be done by `step`."""
        return self._plan.budget is not None

    @property
    def due_ns(self) -> int:
        """When `step` wants to be called at the latest, CLOCK_MONOTONIC."""
        # Asked without the lock that guards the rest.
        return min(
            (watched.due_ns for watched in tuple(self._watched.values())),
            default=_NEVER_NS,
        )

    @property
    def traps(self) -> int:
        """How often any process has run into a probe, as far as it has been read."""
        return self._forgotten_traps + sum(
            watched.cost.cost().traps for watched in self._watched.values()
        )

    def begin(self, pid: int, pidfd: int, place: object, window: ProbeWindow) -> None:
        """Open *window* of *pid*, for good or as far as the budget goes; raises as that does.

        *place* is what processes have in common that are probed at the same places of a file.
        """
        watched = _Watched(pid, pidfd, place, window, WindowCost(pid, window))
        self._open_in[place].add(pid)
        try:
            if self._plan.budget is None:
                window.open_for_good(self._prices(place))
            else:
                # Seen from the start, on credit: what costs less than the budget, as most
                # programs do, is never missed.
                governor = Governor(self._plan.budget, self._random, self._pace)
                grant = governor.begin_open(watched.cost.usage)
                window.open(self._prices(place), grant.allowance_ns)
                watched.governor = governor
        except BaseException:
            self._leave(watched)
            raise
        self._watched[pid] = watched

    def step(self) -> None:
        """Open and end the windows that are due, or have used up what they were allowed."""
        now_ns = time.monotonic_ns()
        self._pace.processes = sum(each.takes_turns for each in self._watched.values())
        for watched in self._watched.values():
            governor = watched.governor
            if governor is None:
                continue
            if (watched.due_ns <= now_ns or watched.window.has_used_up) and not has_ended(
                watched.pidfd
            ):
                self._ask(watched, governor)

    def note_cost(self) -> None:
        """Read what the process has used whose account is the oldest.

        When one has ended, that cannot be read any more.
        """
        alive = (each for each in self._watched.values() if not each.is_over)
        oldest = min(alive, key=lambda each: each.cost.usage.at_ns, default=None)
        if oldest is not None and not has_ended(oldest.pidfd):
            oldest.cost.update()

    def end(self, pid: int) -> None:
        """Take the probes out of *pid*, which is not observed any more."""
        watched = self._watched.get(pid)
        if watched is not None and not watched.is_over:
            watched.cost.update(is_alive=not has_ended(watched.pidfd))
            watched.governor = None
            watched.is_over = True
            watched.window.close()
            self._leave(watched)

    def forget(self, pid: int) -> None:
        """Drop what is known of *pid*, which has been ended."""
        watched = self._watched.pop(pid, None)
        if watched is not None:
            self._forgotten_traps += watched.cost.cost().traps

    def cost(self, pid: int, *, is_alive: bool) -> TracingCost | None:
        """Return what tracing costs *pid*, by the costs of a trap on this machine."""
        watched = self._watched.get(pid)
        if watched is None:
            return None
        if is_alive:
            watched.cost.update()
        return watched.cost.cost()

    def _ask(self, watched: _Watched, governor: Governor) -> None:
        window = watched.window
        if window.has_used_up:
            window.end()
        watched.cost.update()
        grant = governor.step(watched.cost.usage, is_open=window.is_open)
        watched.until_ns = _NEVER_NS
        try:
            if grant is None:
                window.end()
            elif window.is_open:
                window.allow(self._prices(watched.place), grant.allowance_ns)
            elif window.can_open:
                self._open(watched, grant.allowance_ns)
        except (GilscopeError, OSError) as error:
            # Most likely the process is about to end, or replaces its program.
            _log.debug("process %d: no window to see %s in: %s", watched.pid, self._what, error)
            window.end()
        if not window.is_open:
            self._leave(watched)
            self._tell(watched)
        elif grant is not None and grant.until_ns is not None:
            watched.until_ns = grant.until_ns

    def _open(self, watched: _Watched, allowance_ns: int) -> None:
        self._open_in[watched.place].add(watched.pid)
        watched.window.open(self._prices(watched.place), allowance_ns)
        if has_ended(watched.pidfd):
            # Its number may be another process' by now.
            watched.window.end()

    def _leave(self, watched: _Watched) -> None:
        self._open_in[watched.place].discard(watched.pid)
        if not self._open_in[watched.place]:
            del self._open_in[watched.place]

    def _tell(self, watched: _Watched) -> None:
        if not watched.is_told:
            watched.is_told = True
            _log.info(
                "process %d: to see all of its %s would cost more than the overhead budget; they "
                "are seen in windows",
                watched.pid,
                self._what,
            )

    def _prices(self, place: object) -> TrapPrices:
        sharing = len(self._open_in[place])
        all_of_them = Sharing(sharing, sharing)
        costs = self._plan.costs
        return TrapPrices(
            round(self._price_list(Prices(costs, is_stepped=False), all_of_them)),
            round(self._price_list(Prices(costs, is_stepped=True), all_of_them)),
        )
