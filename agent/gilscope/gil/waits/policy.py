"""The policy of windows of waits in one process: the probes put in and taken out as is planned."""

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from random import Random
from typing import Final

from gilscope.budget.wait_share import WINDOW_NS, WaitSchedule, WaitShare
from gilscope.errors import GilscopeError
from gilscope.gil.totals.scaled import ScaledCounts
from gilscope.gil.waits.window import WaitWindow
from gilscope.process import procfs
from gilscope.values import dataclass

__all__ = ["Counted", "ProcessWaits", "relative_error"]

_log = logging.getLogger(__name__)

_NEVER_NS: Final = 1 << 63
_S: Final = 1_000_000_000
_MS: Final = 1_000_000
_ALL_NS: Final = 1 << 62
"""A window that lasts for so long does not end."""

_INTERVALS: Final = 3
"""Of switches, for which the probes are in before a window: whoever waits has woken by then."""
_USUAL_INTERVAL_NS: Final = 5 * _MS
_FEW: Final = 20
"""Waits that end in a second: where there are fewer while somebody waits, the lock is kept. Then
the probes stay in, so that it is seen for how long, and next to nobody runs into them."""
_GIVEN_UP_NS: Final = 10 * _S
"""For so long a wait is followed behind its window where others switch all the time."""
_ASKED_AGAIN_NS: Final = (10 * _MS, 100 * _MS)
"""Whether all waits of a window have ended, or all probes are out; and where that lasts longer."""
_MOST_WINDOWS: Final = 120
"""From which it is told how far off an estimate is; with a seventh of the time, those of eight
minutes."""
_LEAST_WINDOWS: Final = 8
_DEVIATIONS: Final = 1.96


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of the waits of one process."""

    read: Callable[[], object]
    """Has all be read that was counted so far."""
    seen_wait_ns: Callable[[], int]
    """How long the waits have lasted in all that were counted."""
    ended_waits: Callable[[], int]
    """How many its probes have seen the end of, whether they counted or not."""
    keeper_losses: Callable[[], int]
    """How often all probes have gone."""


@dataclass(slots=True, eq=False)
class ProcessWaits:
    """One process, and in which part of the time its waits are seen."""

    pid: int
    window: WaitWindow
    scaled: ScaledCounts
    share: WaitShare
    random: Random
    counted: Counted
    due_ns: int = _NEVER_NS
    """When `step` has something to do, CLOCK_MONOTONIC."""
    given_up: int = 0
    """How many waits that counted were not followed to their end."""
    missed: int = 0
    """How many windows did not take place, whatever the reason: estimates are too low by these."""
    error: float | None = None
    """By how much of itself the time waited is off at most, in 19 of 20 cases; None: unknown. It is
    judged by how much windows differ from each other."""
    _schedule: WaitSchedule = field(init=False)
    _share: float = 1.0
    """By which what is counted is scaled now."""
    _is_pending: bool = False
    """Whether the share has changed, which takes hold when the probes are out."""
    _has_just_ended: bool = False
    """Whether the share has been about to change since the last window, whose probes go out."""
    _all_from_ns: int = 0
    """When all waits are seen from, where they are; or up to when they were."""
    _is_told: bool = False
    """Whether it was said that waits are seen in windows."""
    _is_warned: bool = False
    """Whether it was said that the probes cannot be put in."""
    _counted_ns: int = 0
    """At the end of the last window."""
    _ended: tuple[int, int] = (0, 0)
    """When it was last asked how many waits have ended, and how many had."""
    _losses: int = 0
    """Of keepers, when the probes were put in."""
    _of_windows: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_WINDOWS))
    """For how long the waits of each window stand."""

    def __post_init__(self) -> None:
        """Begin with all waits."""
        self._schedule = WaitSchedule(self.random)
        self._losses = self.counted.keeper_losses()

    def change(self) -> None:
        """Do as the share says, which has just changed.

        Not before the waits that were seen under the last one have ended: each counts for what it
        stood for when it began. And not before the spell is over that the last window stands for.
        """
        self._is_pending = True
        self.scaled.is_used = True
        now_ns = time.monotonic_ns()
        if not self.window.is_placed:
            self._has_just_ended = False
            self.due_ns = min(self.due_ns, now_ns)
        elif self._share == 1.0:
            self._ended = now_ns, self.counted.ended_waits()
            self.due_ns = now_ns + _ASKED_AGAIN_NS[1]

    def step(self, now_ns: int) -> bool:
        """Put the probes in, or take them out, if due; return whether the share came to hold."""
        if now_ns < self.due_ns:
            return False
        window = self.window
        if window.is_placed and self._share == 1.0:
            self._step_all(now_ns)
        elif window.is_placed:
            self._step_window(now_ns)
        elif not window.is_out:
            self.due_ns = now_ns + _ASKED_AGAIN_NS[0]
        elif self._is_pending and (self._has_just_ended or now_ns <= self._spell_ns):
            self._take_over(now_ns)
            return True
        elif now_ns < self._wanted_ns:
            self.due_ns = self._wanted_ns
        else:
            self._place()
        return False

    @property
    def _spell_ns(self) -> int:
        """When the time begins that the next window stands for; the last one stands up to then."""
        return self._all_from_ns if self._share == 1.0 else self._schedule.spell_ns

    @property
    def _wanted_ns(self) -> int:
        """When the probes are to be put in next."""
        from_ns = self._all_from_ns if self._share == 1.0 else self._schedule.from_ns
        return from_ns - self._warm_up_ns()

    def _step_all(self, now_ns: int) -> None:
        """Come to see windows only, where all waits are seen so far."""
        window = self.window
        in_flight = window.in_flight()
        if now_ns < window.until_ns:
            if min(in_flight) <= now_ns and self._ended_a_second(now_ns) < _FEW:
                # It costs next to nothing while the lock is kept.
                self.due_ns = now_ns + _S
                return
            window.end()
            self._all_from_ns = window.until_ns
            # Who has begun to wait in between is seen then.
            self.due_ns = now_ns + _ASKED_AGAIN_NS[0]
        elif now_ns - _GIVEN_UP_NS <= in_flight.counted_ns <= now_ns:
            self.due_ns = now_ns + self._ask_again_ns(now_ns)
        else:
            self._take_out()
            self.due_ns = now_ns

    def _step_window(self, now_ns: int) -> None:
        window, schedule = self.window, self._schedule
        if now_ns < window.until_ns:
            self.due_ns = window.until_ns
            return
        in_flight = window.in_flight()
        is_followed = in_flight.counted_ns <= now_ns
        is_kept = min(in_flight) <= now_ns and self._ended_a_second(now_ns) < _FEW
        is_given_up = not is_kept and now_ns > in_flight.counted_ns + _GIVEN_UP_NS
        if is_given_up or (not is_followed and (self._is_pending or not is_kept)):
            self._take_out()
            # What was given up is cleared when they are out, and may not wait for the next window.
            is_urgent = self._is_pending or is_given_up
            self.due_ns = now_ns if is_urgent else self._wanted_ns
            return
        self.due_ns = now_ns + self._ask_again_ns(now_ns)
        if now_ns < schedule.from_ns:
            return
        if self._is_pending and not is_kept:
            # Its waits would have to be followed too, under the share that is no more to hold.
            self.missed += 1 + schedule.advance(now_ns, self._share)
            return
        self._note_window()
        window.go_on(schedule.from_ns, WINDOW_NS)
        self.missed += schedule.advance(now_ns, self._share)
        self.due_ns = window.until_ns

    def _ask_again_ns(self, now_ns: int) -> int:
        """Return when to ask again whether the waits of a window have ended."""
        lasts_longer = now_ns - self.window.until_ns > _ASKED_AGAIN_NS[1]
        return _ASKED_AGAIN_NS[lasts_longer]

    def _take_out(self) -> None:
        if self.counted.keeper_losses() == self._losses:
            self._note_window()
        else:
            self.missed += 1
        self.given_up += self.window.take_out()
        self._has_just_ended = True

    def _take_over(self, now_ns: int) -> None:
        """Let what is counted from now on stand for as much as the new share says."""
        share, spell_ns = self.share.share, self._spell_ns
        self._is_pending = False
        self.counted.read()
        self.scaled.weight = 1 / share
        if not self._is_told:
            self._is_told = True
            _log.info(
                "process %d: to see all its waits would cost more than the overhead budget; they "
                "are seen in windows now",
                self.pid,
            )
        self._share = share
        if share == 1.0:
            self._of_windows.clear()
            self.error = None
            # Nothing stands for what has passed since that.
            self.missed += now_ns - spell_ns > WINDOW_NS
            self._all_from_ns = max(spell_ns, now_ns)
        else:
            self.missed += self._schedule.begin(spell_ns, now_ns, share)
        self.due_ns = self._wanted_ns

    def _place(self) -> None:
        now_ns, is_all = time.monotonic_ns(), self._share == 1.0
        length_ns = _ALL_NS if is_all else WINDOW_NS
        try:
            self.window.place(self._wanted_ns + self._warm_up_ns(), self._warm_up_ns(), length_ns)
        except (GilscopeError, OSError) as error:
            # Most likely the process has just ended.
            level = logging.DEBUG
            if not self._is_warned and procfs.is_alive(self.pid):
                self._is_warned, level = True, logging.WARNING
            _log.log(level, "process %d: its waits are not seen: %s", self.pid, error)
            self.missed += 1
            self._has_just_ended = True
            if is_all:
                self._all_from_ns = now_ns + WINDOW_NS
            else:
                self.missed += self._schedule.advance(now_ns, self._share)
            # However early the probes would have to be there.
            self.due_ns = now_ns if self._is_pending else max(self._wanted_ns, now_ns + WINDOW_NS)
            return
        self._counted_ns = self.counted.seen_wait_ns()
        self._ended = time.monotonic_ns(), self.counted.ended_waits()
        self._losses = self.counted.keeper_losses()
        if not is_all:
            self.missed += self._schedule.advance(now_ns, self._share)
        self.due_ns = _NEVER_NS if is_all else self.window.until_ns

    def _note_window(self) -> None:
        before, self._counted_ns = self._counted_ns, self.counted.seen_wait_ns()
        if self._share < 1.0:
            # Of a process that has just begun another program, nothing is left.
            self._of_windows.append(max(0, self._counted_ns - before) / self._share)
            self.error = relative_error(self._of_windows)

    def _ended_a_second(self, now_ns: int) -> float:
        """Return how many waits have ended in a second, since the probes were put in or asked."""
        (at_ns, before), ended = self._ended, self.counted.ended_waits()
        if now_ns - at_ns >= _ASKED_AGAIN_NS[1]:
            self._ended = now_ns, ended
        return (ended - before) * _S / max(1, now_ns - at_ns)

    def _warm_up_ns(self) -> int:
        return _INTERVALS * (self.window.longest_interval_ns or _USUAL_INTERVAL_NS)


def relative_error(sums: Sequence[float]) -> float | None:
    """Return how far off the sum of all is, estimated from these of windows, as a part of it.

    In 19 of 20 cases. None: there are too few, or they are all nothing.
    """
    if len(sums) < _LEAST_WINDOWS or not any(sums):
        return None
    mean, deviation = statistics.fmean(sums), statistics.stdev(sums)
    return _DEVIATIONS * deviation / (mean * math.sqrt(len(sums)))
