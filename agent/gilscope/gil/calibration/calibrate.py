"""Measures what one trap costs on this machine, on a lock of the agent's own."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.errors import GilscopeError
from gilscope.gil.calibration.dummy_lock import DummyLock, Exercise
from gilscope.values import dataclass

__all__ = ["Attach", "Counted", "DummyHook", "Run", "calibrate", "costs_of", "dummy_hooks"]


_log = logging.getLogger(__name__)

# Each run takes less than a tenth of a millisecond of traps, so that most runs are not interrupted
# even where the agent has to share its processor.
_RUNS: Final = 30
_ROUNDS: Final = {Exercise.HOLDS: 60, Exercise.STEPPED_HOLDS: 4, Exercise.WAITS: 40}
_TRAPS_PER_ROUND: Final = 2
_OTHERS: Final = 8
_NS_PER_US: Final = 1_000


class DummyHook(NamedTuple):
    """One program at one place, as in a plan for a real process."""

    program: str
    path: str
    offset: int
    """In the file, bytes."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the probes have counted of the dummy lock so far."""

    hold_ns: int
    holds: int
    waits: int

    def __sub__(self, earlier: "Counted") -> "Counted":
        return Counted(
            self.hold_ns - earlier.hold_ns, self.holds - earlier.holds, self.waits - earlier.waits
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One exercise done twice in a row, without probes and with them."""

    rounds: int
    plain_ns: int
    probed_ns: int
    counted: Counted
    """By the probes, in the second."""

    def times(self, exercise: Exercise) -> int:
        """Return how often the probes have seen *exercise*."""
        return self.counted.waits if exercise is Exercise.WAITS else self.counted.holds


Attach = Callable[[DummyLock, Sequence[DummyHook]], AbstractContextManager[Callable[[], Counted]]]
"""Puts the hooks into this process, in a window that is open all the time, and takes them out in
the end. Yields what reads the counts. Raises GilscopeError or OSError."""


Join = Callable[[Sequence[DummyHook], int], AbstractContextManager[None]]
"""Puts the hooks that many times more at the same places, for a process that never gets there."""


def calibrate(attach: Attach, join: Join) -> TrapCosts:
    """Return what a trap costs here, or `ASSUMED` and a warning where it can't be measured.

    Takes some 10 ms and what *attach* takes. It is the least that a trap costs: a process that has
    much else in its caches was seen to pay up to a quarter more.
    """
    try:
        with DummyLock() as lock, attach(lock, dummy_hooks(lock)) as counted:
            runs = {exercise: _measure(lock, exercise, counted) for exercise in Exercise}
            with join(dummy_hooks(lock), _OTHERS):
                shared = _measure(lock, Exercise.HOLDS, counted)
    except (GilscopeError, OSError) as error:
        return _assumed(str(error))
    try:
        return costs_of(runs, shared)
    except ValueError as error:
        return _assumed(str(error))


def _assumed(reason: str) -> TrapCosts:
    _log.warning(
        "cannot measure what a probe costs here (%s): it is taken for %.1f us, and for %.1f us "
        "where the kernel has to single-step",
        reason,
        ASSUMED.full_ns / _NS_PER_US,
        ASSUMED.stepped_ns / _NS_PER_US,
    )
    return ASSUMED


def dummy_hooks(lock: DummyLock) -> tuple[DummyHook, ...]:
    """Return all hooks that the dummy lock has places for."""
    return (
        DummyHook("on_acquire", lock.path, lock.acquire_offset),
        DummyHook("on_acquire", lock.path, lock.stepped_acquire_offset),
        DummyHook("on_release", lock.path, lock.release_offset),
        DummyHook("on_release", lock.path, lock.stepped_release_offset),
        DummyHook("on_wait", lock.path, lock.wait_offset),
        DummyHook("on_wait_return", lock.path, lock.wait_return_offset),
    )


def _measure(lock: DummyLock, exercise: Exercise, counted: Callable[[], Counted]) -> list[Run]:
    rounds = _ROUNDS[exercise]
    runs = []
    before = counted()
    for _ in range(_RUNS):
        plain_ns = lock.run(exercise, rounds, is_probed=False)
        probed_ns = lock.run(exercise, rounds, is_probed=True)
        after = counted()
        runs.append(Run(rounds, plain_ns, probed_ns, after - before))
        before = after
    return runs


def costs_of(runs: Mapping[Exercise, Sequence[Run]], shared: Sequence[Run]) -> TrapCosts:
    """Return the costs that *runs* of every exercise show, and *shared* runs of holds.

    Whatever disturbs a run makes it longer, so the shortest one tells the cost. Raises ValueError
    if the probes have not seen some run of each from end to end: traps that never happened would
    seem to cost nothing.
    """
    holds = _Seen(Exercise.HOLDS, runs)
    stepped = _Seen(Exercise.STEPPED_HOLDS, runs)
    added_ns = _Seen(Exercise.HOLDS, {Exercise.HOLDS: shared}).trap_ns() - holds.trap_ns()
    return TrapCosts(
        full_ns=holds.trap_ns(),
        stepped_ns=stepped.trap_ns(),
        contention_ns=_Seen(Exercise.WAITS, runs).trap_ns(),
        inside_hold_ns=holds.hold_ns(),
        inside_stepped_hold_ns=stepped.hold_ns(),
        sharing_ns=max(0.0, added_ns / _OTHERS),
        is_measured=True,
    )


class _Seen:
    """The runs of one exercise that can be used."""

    def __init__(self, exercise: Exercise, runs: Mapping[Exercise, Sequence[Run]]) -> None:
        self._name = exercise.name.lower().replace("_", " ")
        # The kernel skips a program while another one, or a change to a map, is interrupted on the
        # same processor.
        self._runs = [run for run in runs[exercise] if run.times(exercise) == run.rounds]
        if not self._runs:
            times = sum(run.times(exercise) for run in runs[exercise])
            rounds = sum(run.rounds for run in runs[exercise])
            raise ValueError(f"the probes have seen {times} of {rounds} {self._name}")

    def trap_ns(self) -> float:
        """Return the time that one trap adds."""
        plain_ns = min(run.plain_ns for run in self._runs)
        added_ns = min(run.probed_ns for run in self._runs) - plain_ns
        if added_ns <= 0:
            raise ValueError(f"the clock has seen no difference between {self._name}")
        return added_ns / (_TRAPS_PER_ROUND * self._runs[0].rounds)

    def hold_ns(self) -> int:
        """Return how long an empty hold seems to last."""
        shortest_ns = min(run.counted.hold_ns / run.counted.holds for run in self._runs)
        # The clock of a hold runs on while its thread has no processor; that of its traps does not.
        return round(min(shortest_ns, _TRAPS_PER_ROUND * self.trap_ns()))
