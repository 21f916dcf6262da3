"""Transactions between two snapshots: what each process lost, with what is not seen left out."""

from dataclasses import replace

from gilscope.model.gil import Tally
from gilscope.model.transactions import Method, StmObservation, StmThread
from gilscope.top.transactions.rates import StmThreadRates, stm_rates
from support.recordings.transactions import MS, stm_observation

_LATER = replace(
    stm_observation(),
    observed_ns=2500 * MS,
    totals=replace(
        stm_observation().totals,
        commits=130,
        aborts=30,
        threads=(
            StmThread(11, "worker", Tally(90 * MS, 45), Tally(25 * MS, 9)),
            StmThread(12, "worker", Tally(30 * MS, 16), Tally(5 * MS, 5)),
        ),
    ),
)


def test_rates_are_of_the_interval() -> None:
    """
    Counts and times since the last look; threads of one name are one.
    """
    (rates,) = stm_rates([stm_observation()], [_LATER])

    assert (500 * MS, 100, 20) == (rates.observed_ns, rates.commits, rates.aborts)
    assert (0, 0) == (rates.aborted_ns, rates.paused_ns)
    assert (StmThreadRates("worker", 2, 30, 4, 20 * MS),) == rates.threads


def test_first_look_is_measured_from_the_attachment_on() -> None:
    """
    What was lost is what aborted tries had run, and all waits.
    """
    (rates,) = stm_rates([], [stm_observation()])

    assert (2000 * MS, 30, 10) == (rates.observed_ns, rates.commits, rates.aborts)
    assert (10 * MS, 20 * MS, 30 * MS) == (rates.aborted_ns, rates.paused_ns, rates.lost_ns)


def test_what_the_method_does_not_see_is_not_zero() -> None:
    """
    Without a log of C8 there are aborts without a cost; of C7 there are none.
    """
    entries, begins = (
        stm_rates([], [stm_observation(method=method)])[0]
        for method in (Method.ENTRIES, Method.BEGINS)
    )

    assert (10, None, None) == (entries.aborts, entries.aborted_ns, entries.lost_ns)
    assert (None, None, None) == (begins.aborts, begins.aborted_ns, begins.lost_ns)
    assert [(10, None)] == [(each.aborts, each.lost_ns) for each in entries.threads]
    assert [(None, None)] == [(each.aborts, each.lost_ns) for each in begins.threads]


def test_figures_of_the_last_window_stay() -> None:
    """
    Until the next window, and marked as such; the sums below are those of now.
    """
    first = stm_rates([stm_observation()], [_LATER])
    now = replace(_LATER, totals=replace(_LATER.totals, at_ns=9000 * MS))
    (second,) = stm_rates([_LATER], [now], first)
    (third,) = stm_rates([now], [now], [second])

    assert [(100, False), (100, True), (100, True)] == [
        (each.commits, each.is_earlier) for each in (*first, second, third)
    ]
    assert now is second.seen
    (fresh,) = stm_rates([stm_observation()], [_LATER], [third])
    assert not fresh.is_earlier


def test_worst_process_is_first_and_one_without_figures_last() -> None:
    """
    A process that is not to be trusted has no figures; one attached anew is another one.
    """
    bad = stm_observation(invalid="its probe has gone", pid=1)
    again: StmObservation = replace(_LATER, since_ns=5)
    found = stm_rates([stm_observation()], [bad, again])

    assert [4711, 1] == [each.process.pid for each in found]
    assert (130, 0) == (found[0].commits, found[1].commits)
