"""The policy of windows in one process: opened and ended as its governor and its file allow."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gilscope.budget.governor import Governor, Grant
from gilscope.budget.stack_sampling import StackSampling
from gilscope.errors import GilscopeError
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.tracing.overhead import CostAccount
from gilscope.gil.tracing.probed_files import ProbedFile
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.waits.policy import ProcessWaits
from gilscope.model.gil import TracingCost
from gilscope.process import procfs
from gilscope.values import dataclass

__all__ = ["NEVER_NS", "ProcessWindows"]

_log = logging.getLogger(__name__)

NEVER_NS: Final = 1 << 63


@dataclass(slots=True, eq=False)
class ProcessWindows:
    """One process, how closely it is watched, and what that costs it."""

    traced: AttachedProcess
    account: CostAccount
    window: Window | None
    file: ProbedFile
    probe: GilProbe
    sampling: StackSampling | None = None
    """None: nothing changes the share of waits whose stacks are read."""
    waits: ProcessWaits | None = None
    """None: all waits are seen."""
    split: Callable[[AttachedProcess], bool] = lambda _traced: False
    """Has it, and all that share its probes on waits, get their own; returns whether they do."""
    wait_error: float | None = None
    """By how much of itself the time waited is off, as was last known."""
    stack_share: float | None = None
    """That share; None: no stacks are read."""
    looked_traps: int = 0
    """How often it had run into a probe on waits when that was last decided on."""
    governor: Governor | None = None
    """None: full mode, or no windows."""
    opened_ns: int = 0
    until_ns: int = NEVER_NS
    """When the window that is open must be ended."""
    is_lingering: bool = False
    """Whether a hold that has outlasted its window is followed on."""
    is_warned: bool = False
    """Whether it was said that no window can be opened."""
    is_over_budget: bool = False
    """Whether waits alone cost more than the budget, as was last said."""
    end_ns: int = NEVER_NS
    """When a window must be ended, CLOCK_MONOTONIC; `NEVER_NS`: none must."""
    wanted_ns: int = NEVER_NS
    """When something else is due that may wait for others; `NEVER_NS`: nothing is."""
    due_ns: int = 0
    """`step` has nothing to do before. All three as of the last `note_due`: a thousand processes
    are asked at each beat."""

    @property
    def takes_turns(self) -> bool:
        """Whether windows are opened and ended in it."""
        return self.governor is not None and not self.governor.is_endless

    def note_due(self) -> None:
        """Find out when something is due: after each call of another method."""
        governor = self.governor
        self.wanted_ns = self._shares_due_ns
        waits_ns = NEVER_NS if self.waits is None else self.waits.due_ns
        if governor is None:
            # In full mode nobody waits for that, but each beat sees whether a window is open.
            self.end_ns, self.due_ns = waits_ns, 0
            return
        self.end_ns = min(self.until_ns, waits_ns)
        self.wanted_ns = min(self.wanted_ns, 0 if self.is_lingering else governor.due_ns)
        self.due_ns = min(self.wanted_ns, self.end_ns)

    def step(self, now_ns: int, *, is_beat: bool) -> None:
        """Do what is due; what may wait only where it *is_beat*."""
        if is_beat and self._shares_due_ns <= now_ns:
            self._look_at_shares(now_ns)
        if self.waits is not None and self.waits.due_ns <= now_ns:
            if self.waits.step(now_ns):
                self.update()
                self.waits.share.restart(self.account.usage)
            self.wait_error = self.waits.error
            self.traced.waits_given_up = self.waits.given_up
            self.traced.windows_missed = self.waits.missed
        governor = self.governor
        if governor is None:
            if is_beat:
                self._reopen()
            return
        is_due = is_beat and (governor.due_ns <= now_ns or self.is_lingering)
        if is_due or self.until_ns <= now_ns:
            self._step(governor)

    def learn(self) -> None:
        """React to the notice that something has come to its end in the window."""
        if self.window is None or self.governor is None:
            return
        if self.window.has_used_up:
            self._ask(self.window, self.governor)
        else:
            self.window.settle()
        self.is_lingering = self.window.is_lingering

    def end_lapsed(self) -> None:
        """Give up what was closed while the agent was silent."""
        if self.window is None:
            return
        self.window.give_up_lingering()
        if self.window.has_used_up:
            self.window.end()
            self.until_ns = NEVER_NS
            self.file.open_in.discard(self.traced.pid)
        self.is_lingering = self.window.is_lingering

    def end(self) -> None:
        """Decide nothing any more; the probes of the window are left to be taken out."""
        self.sampling = None
        if self.waits is not None:
            self.wait_error = self.waits.error
            self.waits = None
        self.update()
        self.governor = None
        self.file.open_in.discard(self.traced.pid)

    def update(self) -> None:
        """Read what tracing has cost, and let as many stacks be read as that allows."""
        traced, account = self.traced, self.account
        account.update(traced, self.probe, self.file.sharing)
        if traced.ended or self.sampling is None:
            return
        if self.sampling.look(account.usage):
            self.stack_share = self.sampling.share
            self.probe.read_stacks_of(traced.pid, self.sampling.share)

    def cost(self) -> TracingCost:
        """Return what tracing costs the process, by the costs of a trap on this machine."""
        self.update()
        return replace(
            self.account.cost(), stack_share=self.stack_share, wait_error=self.wait_error
        )

    @property
    def _shares_due_ns(self) -> int:
        """When it is to be decided next which part of its waits is seen, and of its stacks."""
        sampling_ns = NEVER_NS if self.sampling is None else self.sampling.due_ns
        waits_ns = NEVER_NS if self.waits is None else self.waits.share.due_ns
        return min(sampling_ns, waits_ns)

    def _look_at_shares(self, now_ns: int) -> None:
        traps = self.probe.traps(self.traced.pid)
        if traps == self.looked_traps and self._put_off(now_ns):
            return
        self.looked_traps = traps
        self.update()
        if self.waits is not None and self.waits.share.look(self.account.usage):
            if self.traced.shares_probes and not self.split(self.traced):
                # It is one of very many, and is not asked again.
                self.waits.share.see_all()
            else:
                self.waits.change()

    def _put_off(self, now_ns: int) -> bool:
        """Put both off if no wait leaves them nothing to change; return whether they are."""
        waits = self.waits is None or self.waits.share.put_off(now_ns)
        stacks = self.sampling is None or self.sampling.put_off(now_ns)
        return waits and stacks

    def _reopen(self) -> None:
        """Full mode: begin a window where one has been closed."""
        window = self.window
        if window is None or self.traced.ended or window.is_open:
            return
        window.settle()
        if window.can_open:
            self._open(window, None)
            if window.is_open:
                self.file.open_in.add(self.traced.pid)

    def _step(self, governor: Governor) -> None:
        window = self.window
        if window is None or self.traced.ended:
            return
        if self.is_lingering:
            window.settle()
        if min(governor.due_ns, self.until_ns) <= time.monotonic_ns():
            self._ask(window, governor)
        self.is_lingering = window.is_lingering

    def _ask(self, window: Window, governor: Governor) -> None:
        account, file, pid = self.account, self.file, self.traced.pid
        governor.processes_per_window = file.processes_per_window
        if file.is_full and pid not in file.open_in:
            file.refused_ns = time.monotonic_ns()
            self.update()
            governor.postpone(account.usage)
            return
        if window.has_used_up or file.must_make_room(self.opened_ns, time.monotonic_ns()):
            window.end()
        self.update()
        grant = governor.step(account.usage, is_open=window.is_open)
        self._tell_of_budget(governor)
        self.until_ns = NEVER_NS
        trap_ns = account.prices.full_ns(file.sharing)
        if grant is None:
            window.end()
        elif window.is_open:
            window.allow(account.window_traps + _traps(grant, trap_ns))
        elif not file.is_full and window.can_open:
            self._open(window, _traps(grant, trap_ns))
        if not window.is_open:
            file.open_in.discard(pid)
            return
        file.open_in.add(pid)
        if grant is not None and grant.until_ns is not None:
            self.until_ns = grant.until_ns

    def _open(self, window: Window, traps: int | None) -> None:
        try:
            window.open(traps)
        except (GilscopeError, OSError) as error:
            # Most likely the process has just ended; if not, its holds are seen less often, or
            # never.
            pid, level = self.traced.pid, logging.DEBUG
            if not self.is_warned and procfs.is_alive(pid):
                self.is_warned = True
                level = logging.WARNING
            _log.log(level, "process %d: no window to see holds in: %s", pid, error)
        else:
            self.opened_ns = time.monotonic_ns()

    def _tell_of_budget(self, governor: Governor) -> None:
        """Say so when waits begin to cost more than the budget, and when they no longer do."""
        if governor.is_over_budget == self.is_over_budget:
            return
        self.is_over_budget = governor.is_over_budget
        ratio = self.account.cost().recent_ratio
        _log.warning(
            "process %d: seeing its waits costs more than the overhead budget (%.1f %% in the last "
            "minute); there are no holds until that is over"
            if self.is_over_budget
            else "process %d: tracing is within the overhead budget again (%.1f %%)",
            self.traced.pid,
            100 * ratio,
        )


def _traps(grant: Grant, trap_ns: float) -> int:
    return max(1, int(grant.allowance_ns / trap_ns))
