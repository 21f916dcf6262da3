"""Tests of how costs are told from runs, and of what is assumed where they can't be."""

import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.gil.calibration.calibrate import Counted, DummyHook, Run, calibrate, costs_of
from gilscope.gil.calibration.dummy_lock import DummyLock, Exercise

_needs_x86_64 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the dummy code is x86-64"
)


def _hold(plain_ns: int, probed_ns: int, hold_ns: int, holds: int = 100) -> Run:
    return Run(100, plain_ns, probed_ns, Counted(hold_ns=hold_ns, holds=holds, waits=0))


def _wait(plain_ns: int, probed_ns: int, waits: int = 10) -> Run:
    return Run(10, plain_ns, probed_ns, Counted(hold_ns=0, holds=0, waits=waits))


_RUNS = {
    # The longer of two is always the disturbed one, and never the same run.
    Exercise.HOLDS: [_hold(200, 140_200, 62_040), _hold(900, 120_200, 99_000)],
    Exercise.STEPPED_HOLDS: [_hold(250, 5_000_250, 2_400_000), _hold(250, 6_000_000, 2_500_000)],
    Exercise.WAITS: [_wait(1000, 17_000), _wait(50, 40_000)],
}
_COSTS = TrapCosts(
    full_ns=600.0,
    stepped_ns=25_000.0,
    contention_ns=847.5,
    inside_hold_ns=620,
    inside_stepped_hold_ns=24_000,
    sharing_ns=80.0,
    is_measured=True,
)
# Eight others more: 1240 ns a trap.
_SHARED = [_hold(200, 248_200, 62_040), _hold(900, 300_000, 99_000)]


@contextmanager
def _alone(hooks: Sequence[DummyHook], count: int) -> Iterator[None]:  # noqa: ARG001 - as called
    yield


def test_the_shortest_runs_tell_the_costs() -> None:
    """
    The shortest run with probes less the shortest without, for each of the two traps of a round.
    """
    assert _COSTS == costs_of(_RUNS, _SHARED)


def test_the_order_of_runs_does_not_matter() -> None:
    """
    A disturbance is left out whenever it comes.
    """
    assert _COSTS == costs_of({exercise: runs[::-1] for exercise, runs in _RUNS.items()}, _SHARED)


def test_an_empty_hold_is_no_longer_than_its_traps() -> None:
    """
    Where every hold was interrupted, not more is taken for the traps' than these have taken.
    """
    interrupted = [_hold(200, 120_200, 700_000), _hold(200, 130_000, 900_000)]

    assert 1_200 == costs_of(_RUNS | {Exercise.HOLDS: interrupted}, _SHARED).inside_hold_ns


@pytest.mark.parametrize(
    ("exercise", "missed"),
    [
        (Exercise.HOLDS, _hold(100, 200, 99, holds=99)),
        (Exercise.HOLDS, _hold(100, 200, 0, holds=0)),
        (Exercise.STEPPED_HOLDS, _hold(100, 200, 0, holds=101)),
        (Exercise.WAITS, _wait(1, 2, waits=9)),
    ],
)
def test_a_run_that_was_not_seen_whole_tells_nothing(exercise: Exercise, missed: Run) -> None:
    """
    A run with other counts than rounds is left out, though it be the shortest.
    """
    assert _COSTS == costs_of(_RUNS | {exercise: [*_RUNS[exercise], missed]}, _SHARED)


@pytest.mark.parametrize(
    ("exercise", "words"),
    [
        (Exercise.HOLDS, "the probes have seen 0 of 200 holds"),
        (Exercise.STEPPED_HOLDS, "the probes have seen 0 of 200 stepped holds"),
        (Exercise.WAITS, "the probes have seen 0 of 20 waits"),
    ],
)
def test_probes_that_see_nothing_cost_nothing(exercise: Exercise, words: str) -> None:
    """
    Where no run was seen there is no cost to tell, rather than one of next to nothing.
    """
    unseen = [replace(run, counted=Counted(0, 0, 0)) for run in _RUNS[exercise]]

    with pytest.raises(ValueError, match=words):
        costs_of(_RUNS | {exercise: unseen}, _SHARED)


def test_costs_are_above_zero() -> None:
    """
    A clock that shows no difference is not believed.
    """
    with pytest.raises(ValueError, match="the clock has seen no difference between waits"):
        costs_of(_RUNS | {Exercise.WAITS: [_wait(1000, 1000)]}, _SHARED)


@_needs_x86_64
@pytest.mark.parametrize(
    "refusal",
    [
        NotPermitted("the kernel refused uprobes"),
        KernelOrBccMissing("cannot put uprobes at 0x23"),
        OSError(5, "bad luck"),
    ],
)
def test_refused_probes(refusal: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """
    Without probes the costs are assumed, and one warning says so and why.
    """

    @contextmanager
    def refuse(
        lock: DummyLock,  # noqa: ARG001 - as calibrate calls it
        hooks: Sequence[DummyHook],  # noqa: ARG001 - the same
    ) -> Iterator[Callable[[], Counted]]:
        raise refusal
        yield

    assert ASSUMED == calibrate(refuse, _alone)
    (warning,) = caplog.records
    assert logging.WARNING == warning.levelno
    assert (
        f"cannot measure what a probe costs here ({refusal}): it is taken for 2.0 us, "
        "and for 40.0 us where the kernel has to single-step"
    ) == warning.message


@_needs_x86_64
def test_probes_that_never_fire(caplog: pytest.LogCaptureFixture) -> None:
    """
    Hooks that are accepted and see nothing do not make traps cheap: the costs are assumed.
    """
    asked: list[DummyHook] = []

    @contextmanager
    def pretend(lock: DummyLock, hooks: Sequence[DummyHook]) -> Iterator[Callable[[], Counted]]:
        assert {lock.path} == {hook.path for hook in hooks}
        asked.extend(hooks)
        yield lambda: Counted(0, 0, 0)

    assert ASSUMED == calibrate(pretend, _alone)
    assert ["the probes have seen 0 of 1800 holds" in record.message for record in caplog.records]
    assert [
        ("on_acquire", 0x23),
        ("on_acquire", 0x53),
        ("on_release", 0x32),
        ("on_release", 0x63),
        ("on_wait", 0xAE),
        ("on_wait_return", 0xBF),
    ] == [(hook.program, hook.offset) for hook in asked]


def test_assumptions_are_on_the_safe_side() -> None:
    """
    What is assumed is more than any measured trap cost, and takes nothing away from a hold.
    """
    assert (1_200, 39_000) < (ASSUMED.full_ns, ASSUMED.stepped_ns)
    assert ASSUMED.contention_ns > ASSUMED.full_ns
    assert (0, 0, False) == (
        ASSUMED.inside_hold_ns,
        ASSUMED.inside_stepped_hold_ns,
        ASSUMED.is_measured,
    )
