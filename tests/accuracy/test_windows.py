"""Windows of full mode that are opened by hand, as many as fit: what they say of all holds."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from resource import RUSAGE_THREAD, getrusage

import pytest

from accuracy.holds_truth import Hold, Holds, Witness, assert_same_lengths, held_ns
from accuracy.truth import Answer, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from support.interpreters.known import find_interpreter
from support.tracing.full_mode import (
    assert_adds_up,
    assert_sound,
    held_by,
    holds_of,
    observed_ns,
    tracing,
)
from support.tracing.observations import thread_of
from support.tracing.trace import command_of, observation_of

pytestmark = [pytest.mark.live, pytest.mark.slow]

_WINDOW_TOLERANCE = 0.01

_EDGE_NS = 50_000
"""Whether a hold that begins so close to the edge of a window is inside may be seen either way."""

_FEW = 20
"""Windows are too few to tell anything; even a slow machine makes more."""

_SIGMAS = 4.5
"""So far from its expectation a right count is once in 150,000 times."""

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Bounds:
    """From when to when a window was open, CLOCK_MONOTONIC."""

    from_ns: int
    until_ns: int
    begin_ns: int
    end_ns: int
    """How far off the truth its beginning and its end may be."""

    @property
    def ns(self) -> int:
        """Its length."""
        return self.until_ns - self.from_ns


def _window(tracer: GilAccount, pid: int) -> Window:
    """Return what opens and ends windows of *pid*: the one thing here that is not for everybody."""
    window = tracer._processes.by_pid[pid].window  # noqa: SLF001
    assert window is not None
    return window


def _open_and_end(window: Window, chance: Random) -> _Bounds:
    """Have one window of 5 to 40 ms, after a pause for as long as its probes need to go."""
    window.settle()
    while not window.can_open:
        time.sleep(0.001)
        window.settle()
    time.sleep(chance.uniform(0, 0.02))
    before_ns = window.observed_ns(time.monotonic_ns())
    begin_ns = _uncertain_ns(window.open)
    time.sleep(chance.uniform(0.005, 0.04))
    now_ns = time.monotonic_ns()
    from_ns = now_ns - (window.observed_ns(now_ns) - before_ns)
    end_ns = _uncertain_ns(window.end)
    until_ns = from_ns + window.observed_ns(time.monotonic_ns()) - before_ns
    return _Bounds(from_ns, until_ns, begin_ns, end_ns)


def _uncertain_ns(change: Callable[[], None]) -> int:
    """Return how much later than *change* has read the clock the kernel may have come to know.

    That is up to all the time it takes if another thread was given the processor meanwhile.
    """
    interruptions = getrusage(RUSAGE_THREAD).ru_nivcsw
    began_ns = time.monotonic_ns()
    change()
    took_ns = time.monotonic_ns() - began_ns
    is_undisturbed = interruptions == getrusage(RUSAGE_THREAD).ru_nivcsw
    return _EDGE_NS if is_undisturbed else max(_EDGE_NS, took_ns)


@dataclass(frozen=True, slots=True)
class _Run:
    """A workload under many windows, and what its witness says."""

    windows: tuple[_Bounds, ...]
    observation: GilObservation
    truth: Holds
    answer: Answer

    @property
    def lengths_ns(self) -> list[int]:
        """The lengths of the holds that began in a window."""
        return [
            hold.ns
            for hold in self.truth.finished
            if any(window.from_ns <= hold.from_ns < window.until_ns for window in self.windows)
        ]

    @property
    def at_edges(self) -> int:
        """The number of holds of which it cannot be said whether they began in a window."""
        return sum(
            abs(hold.from_ns - window.from_ns) < window.begin_ns
            or abs(hold.from_ns - window.until_ns) < window.end_ns
            for hold in self.truth.finished
            for window in self.windows
        )

    def held_ns(self, holds: Sequence[Hold]) -> int:
        """Return the part of *holds* that lies in windows."""
        return sum(held_ns(holds, window.from_ns, window.until_ns) for window in self.windows)


def _run_under_windows(
    command: Sequence[str], witness: Witness, tracer: GilAccount, *arguments: str
) -> _Run:
    windows = []
    with started(witness.command(command), "held_known.py", *arguments) as workload:
        tracer.attach(workload.pid)
        window = _window(tracer, workload.pid)
        window.end()
        chance = Random(1)  # noqa: S311 - the same windows each time
        workload.command()
        ends_s = time.monotonic() + float(arguments[arguments.index("--seconds") + 1])
        while time.monotonic() < ends_s:
            windows.append(_open_and_end(window, chance))
            tracer.tick()
        answer = workload.answer()
        workload.await_rest()
        window.settle()
        observation = observation_of(tracer, workload.pid)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    return _Run(tuple(windows), observation, truth, answer)


def _check(run: _Run) -> None:
    """Assert that each hold that began in a window is counted once and whole, and no other."""
    (gil,) = run.observation.totals.gils
    holds = holds_of(gil)
    lengths_ns = run.lengths_ns

    assert_sound(run.observation)
    assert_adds_up(run.observation)
    assert sum(window.ns for window in run.windows) <= observed_ns(run.observation)
    assert holds.finished.count == pytest.approx(len(lengths_ns), abs=run.at_edges)
    if holds.finished.count == len(lengths_ns):
        assert_same_lengths(lengths_ns, holds.finished, slack_ns=_EDGE_NS)
        assert holds.finished.sum_ns == pytest.approx(sum(lengths_ns), rel=_WINDOW_TOLERANCE)
    # The time between the edges, whenever a hold that reaches into a window began.
    assert holds.held_ns == pytest.approx(
        run.held_ns(run.truth.all), rel=_WINDOW_TOLERANCE, abs=len(run.windows) * _EDGE_NS
    )
    for thread in run.answer["threads"]:
        assert held_by(thread_of(run.observation, thread["tid"])).ns == pytest.approx(
            run.held_ns(run.truth.of(thread["tid"])),
            rel=_WINDOW_TOLERANCE,
            abs=len(run.windows) * _EDGE_NS,
        )


@pytest.mark.parametrize("name", ["pyenv-3.8", "debian-3.11", "debian-3.14"])
def test_windows_cut_no_hold_and_prefer_none(name: str, probe: GilProbe, tmp_path: Path) -> None:
    """
    One hold of ten lasts 100 ms, far longer than a window: one of ten does in what is counted.
    """
    arguments = ["--seconds", "8", "--threads", "uneven", "--asleep"]
    command = command_of(find_interpreter(name))
    with tracing(probe) as tracer:
        run = _run_under_windows(command, Witness(tmp_path), tracer, *arguments)
    (gil,) = run.observation.totals.gils
    histogram = holds_of(gil).finished
    long = sum(histogram.octaves()[(50 * _MS).bit_length() :])

    _check(run)
    assert len(run.windows) > _FEW
    # The holds are dealt so that each ten has one long one: their number varies less than this.
    expected, variance = histogram.count / 10, histogram.count * 0.1 * 0.9
    assert long == pytest.approx(expected, abs=_SIGMAS * math.sqrt(variance))


def test_windows_tell_the_length_of_holds_and_their_share(probe: GilProbe, tmp_path: Path) -> None:
    """
    Holds of 5 ms are 5 ms long in windows that are hardly longer, and their share is the true one.
    """
    arguments = ["--seconds", "25", "--threads", "even", "--asleep"]
    with tracing(probe) as tracer:
        run = _run_under_windows(["/usr/bin/python3"], Witness(tmp_path), tracer, *arguments)
    (gil,) = run.observation.totals.gils
    holds = holds_of(gil)
    lengths_ns = [hold.ns for hold in run.truth.finished]
    began_ns, ended_ns = run.windows[0].from_ns, run.windows[-1].until_ns
    share = held_ns(run.truth.all, began_ns, ended_ns) / (ended_ns - began_ns)
    cycles = sum(window.ns for window in run.windows) / 10e6

    _check(run)
    assert len(run.windows) > _FEW
    assert holds.finished.sum_ns / holds.finished.count == pytest.approx(
        sum(lengths_ns) / len(lengths_ns), rel=0.05
    )
    # All between 4.2 and 8.4 ms but those that a busy machine made longer: none was cut.
    octave = (8 * _MS).bit_length()
    others = sum((ns - 1).bit_length() != octave for ns in run.lengths_ns)
    assert holds.finished.octaves()[octave] >= 0.99 * holds.finished.count - others
    # The share of one cycle has a standard deviation of less than 0.4.
    assert holds.held_ns / observed_ns(run.observation) == pytest.approx(
        share, abs=_SIGMAS * 0.4 / math.sqrt(cycles)
    )


def test_windows_among_threads_that_fight(probe: GilProbe, tmp_path: Path) -> None:
    """
    With threads that wait for each other all the time, each has its own part of the windows.
    """
    arguments = ["--seconds", "8", "--threads", "mixed,uneven,native,quick", "--asleep"]
    with tracing(probe) as tracer:
        run = _run_under_windows(["/usr/bin/python3"], Witness(tmp_path), tracer, *arguments)

    _check(run)
    assert len(run.windows) > _FEW
