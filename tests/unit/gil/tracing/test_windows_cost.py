"""What windows have cost a process, and what is told of it."""

from types import SimpleNamespace

import pytest

from support.gil.lock_model import PID
from support.gil.windows_setting import AUTO, COLD, CONTENDED, FULL, S, Setting, grant, price


def test_the_cost_is_that_of_all_traps(setting: Setting) -> None:
    """
    Each kind of trap has its price, rather more than in a practice loop.
    """
    mode = setting.begun(FULL)
    setting.works(1000, holds=500, contention_traps=30)
    cost = mode.cost(setting.traced)

    assert cost is not None
    expected_ns = price(1000, 1000) + price(30, 2000, CONTENDED)
    assert (expected_ns, 1030) == (cost.overhead_ns, cost.traps)
    assert expected_ns / (S - expected_ns) == pytest.approx(cost.recent_ratio)


def test_time_that_is_spent_on_stacks_is_told_as_it_is(setting: Setting) -> None:
    """
    It is measured, not estimated, and comes on top of the traps.
    """
    mode = setting.begun(FULL)
    setting.works(1000, holds=500, contention_traps=30)
    setting.probe.spent_on_stacks_ns = 77_000
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert price(1000, 1000) + price(30, 2000, CONTENDED) + 77_000 == cost.overhead_ns


def test_every_trap_is_dear_where_calls_go_through_slots(setting: Setting) -> None:
    """
    The kernel has to single-step them all.
    """
    setting.target.is_stepped = True
    mode = setting.begun(FULL)
    setting.works(1000, holds=500, contention_traps=30)
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert price(1000, 20_000) + price(30, 20_000, CONTENDED) == cost.overhead_ns


def test_the_ratio_is_that_of_the_last_minute(setting: Setting) -> None:
    """
    What was dear long ago shows in the sum only.
    """
    mode = setting.begun(FULL)
    for _ in range(5):
        setting.works(2000, holds=1000)
        busy = mode.cost(setting.traced)
    for _ in range(35):
        setting.works(2000)
        quiet = mode.cost(setting.traced)

    assert busy is not None
    assert quiet is not None
    assert busy.recent_ratio == pytest.approx(1000 * 2 * COLD * 1000 / (2 * S), rel=0.01)
    assert 0 == quiet.recent_ratio
    assert busy.overhead_ns == quiet.overhead_ns
    # Each time that it is read, less than a nanosecond is cut off.
    assert busy.overhead_ns == pytest.approx(price(10_000, 1000), abs=5)


def test_a_process_that_uses_no_cpu_time_has_no_ratio(setting: Setting) -> None:
    """
    Nothing is divided by nothing.
    """
    mode = setting.begun(FULL)
    setting.process.passes(S)
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert (0, 0.0) == (cost.overhead_ns, cost.recent_ratio)


def test_traps_that_nobody_sees_are_reckoned_with(setting: Setting) -> None:
    """
    A perf event counts no more from its end on, but traps until it is out: as often as before.
    """
    setting.process.probes.has_links = False
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(1000), None]
    mode.step()
    setting.works(10, holds=50)
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + S
    ended = mode.cost(setting.traced)
    setting.works(40)
    closing = mode.cost(setting.traced)
    setting.process.probes.finish_closing()
    setting.works(1000)
    closed = mode.cost(setting.traced)

    assert ended is not None
    assert closing is not None
    assert closed is not None
    assert ended.overhead_ns == pytest.approx(price(100, 1000), abs=2)
    assert closing.overhead_ns == pytest.approx(price(500, 1000), abs=2)
    assert closing.overhead_ns == closed.overhead_ns
    # Only what was seen is called a trap.
    assert 100 == closed.traps


def test_what_a_process_has_cost_outlives_it(setting: Setting) -> None:
    """
    Its last figures stay, though nothing can be read of it any more, until it is forgotten.
    """
    mode = setting.begun(FULL)
    setting.works(1000, holds=500)
    before = mode.cost(setting.traced)
    setting.cpu_ns = None
    setting.fields.ended = True
    mode.end(setting.traced)

    assert before == mode.cost(setting.traced)
    mode.forget(PID)
    assert mode.cost(setting.traced) is None
    mode.end(setting.traced)


def test_waiting_traps_that_nobody_sees_are_reckoned_with(setting: Setting) -> None:
    """
    Of perf events, which linger behind each window of waits: as many in a while as were seen there.
    """
    window = SimpleNamespace(closes_unseen=True, placed_for_ns=0, lingered_ns=0, closing=[])
    setting.fields.wait_window = window
    mode = setting.begun(AUTO)
    costs_ns = []
    for closes_unseen in (True, False):
        window.closes_unseen = closes_unseen
        setting.works(1000, contention_traps=30)
        window.placed_for_ns += 500_000_000
        window.lingered_ns += 1_000_000_000
        cost = mode.cost(setting.traced)
        assert cost is not None
        costs_ns.append(cost.overhead_ns)

    # Twice as many more; and none, where they are out at once.
    assert [price(90, 2000, CONTENDED), price(120, 2000, CONTENDED)] == costs_ns
