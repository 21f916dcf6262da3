"""What a governor grants step by step: windows, their allowances, and the times between."""

from random import Random

import pytest

from gilscope.budget.governor import Budget, Governor, Grant, Usage
from gilscope.budget.pace import Pace
from gilscope.budget.token_bucket import TokenBucket
from support.gil.simulated_target import MS, S


def _governor(seed: int = 1) -> Governor:
    random = Random(seed)  # noqa: S311 - nobody has to be kept from guessing
    return Governor(Budget(0.01), random, Pace())


def test_the_first_window_is_a_small_probe() -> None:
    """
    It comes soon, lasts 20 ms, and may not cost more than that.
    """
    for seed in range(20):
        governor = _governor(seed)
        assert governor.step(Usage(5 * S, 9 * S, 0, 0), is_open=False) is None
        at_ns = governor.due_ns
        assert 5_500 * MS <= at_ns <= 6_500 * MS

        grant = governor.step(Usage(at_ns, 9 * S, 0, 0), is_open=False)

        assert grant is not None
        assert at_ns + 20 * MS == grant.until_ns == governor.due_ns
        assert 20 * MS < grant.allowance_ns < 22 * MS


def test_a_window_that_could_not_be_opened_is_tried_again() -> None:
    """
    Nothing is learned from it: the next one is a first one, too.
    """
    governor = _governor()
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    assert governor.step(Usage(2 * S, S, 0, 0), is_open=False) is not None

    assert governor.step(Usage(3 * S, S, 0, 0), is_open=False) is None

    assert 5 * S <= governor.due_ns <= 9 * S
    grant = governor.step(Usage(9 * S, S, 0, 0), is_open=False)
    assert grant is not None
    assert 9 * S + 20 * MS == grant.until_ns


def test_a_window_that_stays_open_without_leave_gets_none() -> None:
    """
    Whoever is slow to close is told again, and is asked to come back later, not at once.
    """
    governor = _governor()
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    governor.step(Usage(2 * S, S, 0, 0), is_open=False)
    assert governor.step(Usage(2 * S + 21 * MS, S, 18 * MS, 18 * MS), is_open=True) is None

    for at_s in (20, 30, 40):
        usage = Usage(at_s * S, at_s * S, 18 * MS, 18 * MS)
        assert governor.step(usage, is_open=True) is None
        assert governor.due_ns > usage.at_ns
    usage = Usage(50 * S, 50 * S, 18 * MS, 18 * MS)
    assert governor.step(usage, is_open=False) is not None


def test_the_allowance_leaves_what_the_closing_costs() -> None:
    """
    A window took 90 % of a core, and 45 ms of that came after its end.
    """
    governor, bucket = _governor(), TokenBucket(Budget(0.01), Usage(0, 0, 0, 0))
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    opened, ended = Usage(2 * S, S, 0, 0), Usage(2 * S + 20 * MS, S, 18 * MS, 18 * MS)
    bucket.update(opened)
    assert governor.step(opened, is_open=False) is not None
    bucket.update(ended)
    assert governor.step(ended, is_open=True) is None

    for at_s in range(3, 60):
        usage = Usage(at_s * S, at_s * S, 63 * MS, 63 * MS)
        bucket.update(usage)
        grant = governor.step(usage, is_open=False)
        if grant is not None:
            break

    assert grant is not None
    assert 45 * MS == pytest.approx(bucket.held_ns - grant.allowance_ns, abs=1)


def test_the_allowance_is_renewed_while_a_window_goes_on() -> None:
    """
    It is what the bucket holds now, whatever was spent before.
    """
    governor = _governor()
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    governor.step(Usage(2 * S, 2 * S, 0, 0), is_open=False)
    allowances_ms = []
    for at_s in range(3, 60):
        cost_ns = (at_s - 2) * MS
        usage = Usage(at_s * S, at_s * S, cost_ns, cost_ns)
        grant = governor.step(usage, is_open=True)
        assert isinstance(grant, Grant)
        assert grant.until_ns is None
        allowances_ms.append(grant.allowance_ns / MS)

    assert allowances_ms[:10] == sorted(allowances_ms[:10])
    # It earns 10 ms a second, spends one, and keeps what comes in during 20 s.
    assert 170 < min(allowances_ms[30:])
    assert max(allowances_ms[30:]) < 190


def test_a_window_that_there_is_no_room_for_waits_for_the_next_lot() -> None:
    """
    What comes in meanwhile is kept, so that the window opens as soon as there is room.
    """
    governor = _governor()
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    at_ns = governor.due_ns
    for _ in range(10):
        governor.postpone(Usage(at_ns, at_ns, 0, 0))
        assert at_ns + 2 * S <= governor.due_ns <= at_ns + 6 * S
        at_ns = governor.due_ns

    assert governor.step(Usage(at_ns, at_ns, 0, 0), is_open=False) is not None


@pytest.mark.parametrize(("processes", "mean_s"), [(1, 4), (2, 8), (3, 12), (30, 12)])
def test_where_many_share_the_room_each_asks_the_less_often(processes: int, mean_s: int) -> None:
    """
    All of them together ask as often as one would, but a bucket must not forget what it has got.
    """
    governor = _governor()
    governor.processes_per_window = processes
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    at_ns = governor.due_ns
    assert S // 2 <= at_ns <= S + S // 2
    pauses_ns = []
    for _ in range(400):
        governor.postpone(Usage(at_ns, at_ns, 0, 0))
        pauses_ns.append(governor.due_ns - at_ns)
        at_ns = governor.due_ns

    assert mean_s * S // 2 <= min(pauses_ns)
    assert mean_s * S * 3 // 2 >= max(pauses_ns)
    assert mean_s * S == pytest.approx(sum(pauses_ns) / 400, rel=0.06)


def test_a_process_whose_waits_are_too_dear_asks_less_often() -> None:
    """
    Its contention probes alone cost 5 %, and only 1 % is granted: there is nothing to pay with.
    """
    governor = _governor()
    governor.step(Usage(0, 0, 0, 0), is_open=False)
    pauses_ns = []
    for _ in range(400):
        at_ns = governor.due_ns
        usage = Usage(at_ns, at_ns, at_ns // 20, 0)
        assert governor.step(usage, is_open=False) is None
        pauses_ns.append(governor.due_ns - at_ns)

    assert 6 * S <= min(pauses_ns)
    assert 18 * S >= max(pauses_ns)
    assert 12 * S == pytest.approx(sum(pauses_ns) / 400, rel=0.06)


def test_what_begins_open_goes_on_while_it_costs_less_than_comes_in() -> None:
    """
    Open from the start, on credit for 20 ms; two seconds later without an end.
    """
    governor = _governor()
    first = governor.begin_open(Usage(0, 0, 0, 0))
    asked_ns = governor.due_ns
    usage = Usage(asked_ns, 2 * S + 4 * MS, 4 * MS, 4 * MS)
    second = governor.step(usage, is_open=True)

    assert Grant(20 * MS, None) == first
    assert 2 * S == asked_ns
    assert second is not None
    assert second.until_ns is None
    # Income less cost, and what the closing would cost.
    assert 15 * MS < second.allowance_ns < 16 * MS


def test_what_begins_open_is_ended_where_it_costs_more() -> None:
    """
    Used up after 30 ms of a busy process: closed, and not opened before the credit is paid back.
    """
    governor = _governor()
    governor.begin_open(Usage(0, 0, 0, 0))
    closed = governor.step(Usage(30 * MS, 30 * MS, 21 * MS, 21 * MS), is_open=False)
    due_ns = governor.due_ns

    assert closed is None
    assert 2 * S < due_ns < 7 * S
    assert governor.step(Usage(2 * S, 2 * S, 25 * MS, 25 * MS), is_open=False) is None
