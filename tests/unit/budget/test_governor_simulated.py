"""When full mode is on: within the budget, as much as it pays for, and at times drawn at random."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from gilscope.budget.governor import Budget, Governor
from gilscope.budget.pace import Pace
from support.gil.simulated_target import MS, STEPPED_PAIR_NS, Agent, Load, S, Simulation, by_chance

_TIGHT = Load(cores=1, pairs=4_500_000)
"""Takes and releases the lock and does nothing else: 85 % of its speed is lost in full mode."""
_QUIET = Load(cores=0.01, pairs=10_000)
"""A hundred a second."""
_DEAR_WAITS = Load(cores=0.5, pairs=1000, contention_share=0.05)
_STEADY = {
    "tight": _TIGHT,
    "100k/s": Load(cores=1, pairs=100_000),
    "10k/s": Load(cores=1, pairs=10_000),
    "100/s": _QUIET,
    "idle": Load(cores=0, pairs=0),
    "computing": Load(cores=1, pairs=0),
    "stepped 20k/s": Load(cores=1, pairs=20_000, pair_ns=STEPPED_PAIR_NS),
    "stepped 100/s": Load(cores=0.01, pairs=10_000, pair_ns=STEPPED_PAIR_NS),
    "contended": Load(cores=1, pairs=10_000, contention_share=0.004),
}
_TURNING = {
    "20 s each": [(20 * S, _QUIET), (20 * S, _TIGHT)],
    "1 s each": [(S, _QUIET), (S, _TIGHT)],
    "0.1 s of 1": [(900 * MS, _QUIET), (100 * MS, _TIGHT)],
    "5 s of 305": [(300 * S, Load(cores=1, pairs=0)), (5 * S, _TIGHT)],
}
_SHARES = (0.005, 0.01, 0.02)
_LEAST_CORES = Budget(0).least_cores
_AGENTS = {
    "busy": Agent(),
    "asks when it must": Agent(tick_ns=(100 * S, 100 * S)),
    "quick to close": Agent(closing_ns=8 * MS),
}
_A_CLOSING_NS = 50 * MS
"""What it may cost that a process turns busy while the probes are taken out."""


def _random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nobody has to be kept from guessing


def _pace(processes: int) -> Pace:
    pace = Pace()
    pace.processes = processes
    return pace


def _simulate(  # noqa: PLR0913 - most have defaults
    loads: Load | list[tuple[int, Load]],
    seconds: float,
    *,
    share: float = 0.01,
    seed: int = 1,
    agent: Agent = _AGENTS["busy"],
    processes: int = 1,
) -> Simulation:
    if isinstance(loads, Load):
        loads = [(S, loads)]
    governor = Governor(Budget(share), _random(seed), _pace(processes))
    return Simulation(governor, loads, _random(seed + 1000), agent).run(seconds)


@pytest.mark.parametrize("agent", _AGENTS)
@pytest.mark.parametrize("share", _SHARES)
@pytest.mark.parametrize("name", _STEADY)
def test_a_steady_process_costs_no_more_than_its_budget(
    name: str, share: float, agent: str
) -> None:
    """
    Not in any minute from the beginning on, nor in any 20 s after the first 20.
    """
    simulation = _simulate(_STEADY[name], 200, share=share, agent=_AGENTS[agent])

    assert 0 == simulation.excess_ns(share, _LEAST_CORES, 60 * S, 0)
    assert 0 == simulation.excess_ns(share, _LEAST_CORES, 20 * S, 20 * S)


@pytest.mark.parametrize("agent", _AGENTS)
@pytest.mark.parametrize("share", _SHARES)
@pytest.mark.parametrize("name", _TURNING)
def test_a_process_that_turns_busy_costs_the_budget_and_a_closing(
    name: str, share: float, agent: str
) -> None:
    """
    What nobody can foresee is bounded, and paid back: it does not add up over the minutes.
    """
    simulation = _simulate(_TURNING[name], 620, share=share, agent=_AGENTS[agent])

    assert _A_CLOSING_NS > simulation.excess_ns(share, _LEAST_CORES, 120 * S, 20 * S)
    assert _A_CLOSING_NS > simulation.excess_ns(share, _LEAST_CORES, 600 * S, 20 * S)
    assert simulation.coverage() > 0


@pytest.mark.parametrize("share", _SHARES)
@pytest.mark.parametrize("name", ["100/s", "idle", "computing"])
def test_a_quiet_process_is_covered_nearly_always(name: str, share: float) -> None:
    """
    One window, from the second second on.
    """
    simulation = _simulate(_STEADY[name], 120, share=share)

    assert 1 == len(simulation.windows)
    assert simulation.coverage() > 0.98


@pytest.mark.parametrize(
    ("name", "share", "agent", "least_per_minute", "least_coverage"),
    [
        ("tight", 0.005, "busy", 1.5, 0.0005),
        ("tight", 0.01, "busy", 4, 0.002),
        ("tight", 0.02, "busy", 9, 0.006),
        ("tight", 0.005, "quick to close", 3, 0.002),
        ("tight", 0.01, "quick to close", 8, 0.006),
        ("100k/s", 0.005, "busy", 12, 0.015),
        ("100k/s", 0.01, "busy", 12, 0.045),
        ("100k/s", 0.02, "busy", 12, 0.1),
        ("10k/s", 0.005, "busy", 8, 0.25),
        ("10k/s", 0.01, "busy", 5, 0.55),
        ("10k/s", 0.01, "asks when it must", 5, 0.55),
        ("stepped 20k/s", 0.01, "busy", 7, 0.005),
        ("contended", 0.01, "busy", 5, 0.3),
    ],
)
def test_a_busy_process_is_covered_as_the_budget_allows(
    name: str, share: float, agent: str, least_per_minute: float, least_coverage: float
) -> None:
    """
    Short windows now and then, none of which ends because it was too dear.
    """
    simulation = _simulate(_STEADY[name], 600, share=share, agent=_AGENTS[agent])

    assert len(simulation.windows) > 10 * least_per_minute
    assert simulation.coverage() > least_coverage
    assert [] == [window for window in simulation.windows if window.has_used_up]


@pytest.mark.parametrize(
    ("name", "least_coverage"),
    [("tight", 0.0025), ("100k/s", 0.04), ("10k/s", 0.45), ("contended", 0.25)],
)
def test_one_of_many_is_covered_by_longer_windows(name: str, least_coverage: float) -> None:
    """
    It waits twice as long for them, and costs no more than its budget all the same.
    """
    simulation = _simulate(_STEADY[name], 600, agent=Agent(late_ns=0), processes=20)
    pauses_ns = [after.from_ns - before.until_ns for before, after in pairwise(simulation.windows)]

    assert 4 * S <= min(pauses_ns)
    assert 0 == simulation.excess_ns(0.01, _LEAST_CORES, 20 * S, 20 * S)
    assert simulation.coverage() > least_coverage


def test_a_window_in_a_tight_loop_is_short() -> None:
    """
    20 to 60 ms, all lengths between, and seldom more.
    """
    windows = _simulate(_TIGHT, 3600, agent=Agent(late_ns=0)).windows

    lengths_ms = sorted((window.until_ns - window.from_ns) / MS for window in windows)
    assert 20 <= lengths_ms[0] < 21
    assert 59 < lengths_ms[-5] < 60
    assert lengths_ms[-1] < 65


def test_a_busy_process_on_a_part_of_a_core_is_seen_at_times() -> None:
    """
    It saves up for longer than a stretch, and costs no more than its budget in the long run.
    """
    simulation = _simulate(Load(cores=0.25, pairs=4_500_000), 1200)

    assert len(simulation.windows) > 12
    assert 0 == simulation.excess_ns(0.01, _LEAST_CORES, 120 * S, 0)


def test_a_process_that_turns_busy_is_stopped_by_the_allowance() -> None:
    """
    The allowance is never more than the bucket holds: the income of 20 s, and no idle night's.
    """
    loads = [(3600 * S, Load(cores=1, pairs=0)), (60 * S, _TIGHT)]

    simulation = _simulate(loads, 3660)

    burst = [each for each in simulation.windows if each.until_ns > 3600 * S]
    assert burst[0].has_used_up
    assert simulation.cost_ns < 20 * S * 0.01 + _A_CLOSING_NS + 60 * S * 0.01
    assert simulation.excess_ns(0.01, _LEAST_CORES, 21 * S, 20 * S) < _A_CLOSING_NS


def test_a_process_that_has_become_quiet_is_covered_again() -> None:
    """
    A busy start is forgotten after two to three minutes.
    """
    for seed in range(10):
        loads = [(60 * S, _TIGHT), (1000 * S, _QUIET)]

        simulation = _simulate(loads, 400, seed=seed)

        assert 1 == simulation.coverage(since_ns=240 * S)


@pytest.mark.parametrize("late_ms", [0, 20])
def test_windows_meet_every_phase_of_whatever_repeats_itself(late_ms: int) -> None:
    """
    With the periods of everything that has a period here, and some more.
    """
    agent = Agent(tick_ns=(100 * S, 100 * S), late_ns=late_ms * MS)
    simulation = _simulate(_TIGHT, 4 * 3600, share=0.02, agent=agent)

    begins_ns = [window.from_ns for window in simulation.windows]
    assert len(begins_ns) > 2000
    for period_ms in (20, 40, 50, 60, 250, 1000, 2000, 4000, 5000, 10_000, 20_000, 60_000):
        phases = Counter(at_ns % (period_ms * MS) * 10 // (period_ms * MS) for at_ns in begins_ns)
        expected = len(begins_ns) / 10
        deviation = sum((phases[phase] - expected) ** 2 / expected for phase in range(10))
        # Nine degrees of freedom: more than that once in a thousand times.
        assert deviation < 27.9, f"{period_ms} ms: {sorted(phases.items())}"


def test_pauses_are_drawn_by_lot() -> None:
    """
    No two are the same: half to one and a half times 4 s, and more where the bucket is empty.
    """
    windows = _simulate(Load(cores=1, pairs=100_000), 3600, agent=Agent(late_ns=0)).windows

    pauses_ns = sorted(after.from_ns - before.until_ns for before, after in pairwise(windows))
    assert len(pauses_ns) == len(set(pauses_ns))
    assert 2 * S <= pauses_ns[0] < 2.1 * S
    assert 5.9 * S < pauses_ns[-10] < 6 * S
    assert pauses_ns[-1] < 12 * S


@pytest.mark.parametrize("period_s", [0.25, 1, 4, 20])
def test_a_phase_that_repeats_itself_is_met_as_often_as_it_is_there(period_s: float) -> None:
    """
    A quarter of the time is one thing; so is a quarter of what windows cover.
    """
    quarter_ns = int(period_s * S / 4)
    busy = Load(cores=1, pairs=100_000)
    loads = [(quarter_ns, busy), (3 * quarter_ns, Load(cores=1, pairs=90_000))]

    there, met = _simulate(loads, 4 * 3600).parts_of(busy)

    assert there == pytest.approx(0.25, abs=1e-4)
    assert met == pytest.approx(0.25, abs=0.035)


@pytest.mark.parametrize("busy", [_TIGHT, Load(cores=1, pairs=100_000)])
def test_what_comes_by_fits_and_starts_is_met_as_often_as_it_is_there(busy: Load) -> None:
    """
    Half of the time at random: price and allowance see what happens, and bias little.
    """
    loads = by_chance(_random(3), [(1, busy), (1, Load(cores=1, pairs=100))], 4 * 3600)

    there, met = _simulate(loads, 4 * 3600).parts_of(busy)

    assert there == pytest.approx(0.5, abs=0.02)
    assert met == pytest.approx(there, abs=0.03)


@pytest.mark.parametrize("share", _SHARES)
def test_contention_probes_that_cost_the_budget_leave_nothing_for_windows(share: float) -> None:
    """
    They are never off, so that only windows can give way.
    """
    simulation = _simulate(Load(cores=1, pairs=10_000, contention_share=0.021), 300, share=share)

    assert [] == simulation.windows


def test_windows_come_back_soon_after_an_hour_of_contention() -> None:
    """
    What the contention probes cost above the budget is not made up for.
    """
    contended = Load(cores=1, pairs=10_000, contention_share=0.03)
    loads = [(3600 * S, contended), (3600 * S, Load(cores=1, pairs=10_000))]

    first = _simulate(loads, 3700).windows[0]

    assert 3600 * S < first.from_ns < 3640 * S


def test_an_agent_that_was_suspended_has_nothing_saved_up() -> None:
    """
    A minute without a tick while no window is open buys no more than usual.
    """
    for seed in range(10):
        before = _simulate(_TIGHT, 300, seed=seed)
        closed_ns = before.windows[-1].until_ns + 500 * MS
        agent = Agent(asleep=(closed_ns, closed_ns + 60 * S))

        simulation = _simulate(_TIGHT, 600, seed=seed, agent=agent)

        assert 0 == simulation.excess_ns(0.01, _LEAST_CORES, 20 * S, 20 * S)


def test_what_a_suspended_agent_leaves_open_is_paid_back() -> None:
    """
    The probes stay, which costs a minute of a tight loop; no window opens until it is paid for.
    """
    opened_ns = _simulate(_TIGHT, 300).windows[-1].from_ns
    agent = Agent(asleep=(opened_ns + MS, opened_ns + 10 * S))

    simulation = _simulate(_TIGHT, 2000, agent=agent)

    (window,) = (each for each in simulation.windows if each.from_ns == opened_ns)
    assert window.has_used_up
    assert window.until_ns < opened_ns + 300 * MS
    later = next(each for each in simulation.windows if each.from_ns > opened_ns)
    assert 800 * S < later.from_ns - opened_ns < 1000 * S
    assert 0 == simulation.excess_ns(0.01, _LEAST_CORES, 1400 * S, 0)


@pytest.mark.parametrize(("seconds", "is_told"), [(55, False), (130, True)])
def test_contention_above_the_budget_is_told_after_a_minute(
    seconds: float,
    is_told: bool,  # noqa: FBT001
) -> None:
    """
    Waits stay counted whatever they cost; what is above the budget for long is said.
    """
    simulation = _simulate(_DEAR_WAITS, seconds)

    assert is_told == simulation.governor.is_over_budget


def test_contention_that_has_become_cheap_is_told_as_well() -> None:
    """
    Also after a minute, so that ups and downs are not told each time.
    """
    loads = [(130 * S, _DEAR_WAITS), (1000 * S, Load(cores=0.5, pairs=1000))]
    simulation = _simulate(loads, 130)

    assert simulation.governor.is_over_budget
    assert simulation.run(40).governor.is_over_budget
    assert not simulation.run(70).governor.is_over_budget
