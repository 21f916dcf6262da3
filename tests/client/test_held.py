"""For how long a region's thread held the GIL, where the agent tells that."""

import threading
from typing import TYPE_CHECKING

import pytest

from gilscope_client import region
from gilscope_client._agent import threads

if TYPE_CHECKING:
    from client.conftest import FakeAgent


@pytest.fixture
def full_agent(fake_agent: "FakeAgent") -> "FakeAgent":
    """An agent in full mode, which has seen this thread take the GIL at 1000."""
    fake_agent.tell_holds()
    fake_agent.run(1000)
    fake_agent.acquire()
    return fake_agent


def test_region_within_a_hold(full_agent: "FakeAgent") -> None:
    """
    Neither what came before nor what comes after: its thread never gave the GIL up.
    """
    full_agent.run(7)
    with region() as one:
        full_agent.run(20)
    full_agent.run(300)

    assert (20, 0) == (one.held_ns, one.wait_ns)


def test_region_over_several_holds(full_agent: "FakeAgent") -> None:
    """
    The end of the first, a whole one, and the beginning of the last; no time between them.
    """
    full_agent.run(3)
    with region() as one:
        full_agent.run(10)
        full_agent.release()
        full_agent.run(5000)
        full_agent.acquire()
        full_agent.run(200)
        full_agent.release()
        full_agent.wait(6000)
        full_agent.acquire()
        full_agent.run(4000)

    assert (4210, 6000, 1) == (one.held_ns, one.wait_ns, one.waits)


def test_regions_lie_inside_of_each_other(full_agent: "FakeAgent") -> None:
    """
    The outer one has what the inner one has too.
    """
    with region() as outer:
        full_agent.run(1)
        with region() as inner:
            full_agent.run(20)
        full_agent.run(300)

    assert (20, 321) == (inner.held_ns, outer.held_ns)


def test_steps_are_added_up(full_agent: "FakeAgent") -> None:
    """
    Of a coroutine each; not what runs while it is suspended.
    """

    class Suspended:
        def __await__(self) -> object:
            full_agent.run(10)
            yield
            full_agent.run(200)

    one = region()
    steps = one.run(Suspended())
    steps.send(None)
    full_agent.run(3000)
    with pytest.raises(StopIteration):
        steps.send(None)

    assert 210 == one.held_ns


def test_hold_that_began_unseen_is_not_known(fake_agent: "FakeAgent") -> None:
    """
    The agent came while it went on; waits are known all the same.
    """
    fake_agent.tell_holds()
    with region() as one:
        fake_agent.wait(5)
        fake_agent.acquire()

    assert (None, 5) == (one.held_ns, one.wait_ns)


def test_another_thread_that_holds_it_is_not_this_one(full_agent: "FakeAgent") -> None:
    """
    As where the two are of interpreters with a GIL each.
    """
    with region() as one:
        full_agent.run(5)
        other = threading.Thread(target=full_agent.acquire)
        other.start()
        other.join()

    assert one.held_ns is None
    assert 0 == one.wait_ns


def test_gil_given_up_between_time_and_figures(
    full_agent: "FakeAgent", monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What was read is of another hold than the time.
    """
    with region():
        pass  # its place is there from now on

    def late_ns() -> int:
        now_ns = full_agent.now_ns()
        full_agent.release()
        full_agent.run(10)
        full_agent.acquire()
        return now_ns

    with region() as before:
        full_agent.run(10)
        monkeypatch.setattr(threads.place, "clock", late_ns)
    monkeypatch.setattr(threads.place, "clock", full_agent.now_ns)
    full_agent.run(100)
    with region() as after:
        full_agent.run(10)

    assert (None, 10) == (before.held_ns, after.held_ns)


@pytest.mark.parametrize(("shift_ns", "held_ns"), [(10**9, 10), (-(10**9), None)])
def test_clock_of_the_program_is_shifted(
    full_agent: "FakeAgent", monkeypatch: pytest.MonkeyPatch, shift_ns: int, held_ns: int | None
) -> None:
    """
    As of a program under libfaketime: what is ahead is so at both ends.
    """
    with region():
        pass
    monkeypatch.setattr(threads.place, "clock", lambda: full_agent.now_ns() + shift_ns)
    with region() as one:
        full_agent.run(10)
        full_agent.release()
        full_agent.acquire()

    assert (held_ns, 0) == (one.held_ns, one.wait_ns)


def test_more_than_all_of_the_time_is_not_believed(full_agent: "FakeAgent") -> None:
    """
    Nobody holds the GIL for longer than from the beginning to the end.
    """
    with region() as one:
        full_agent.run(10)
        full_agent.release()
        full_agent.release()
        full_agent.acquire()

    assert one.held_ns is None


def test_agent_that_does_not_tell_holds(fake_agent: "FakeAgent") -> None:
    """
    In contention mode and in auto mode.
    """
    with region() as one:
        fake_agent.wait(5)

    assert (None, 5) == (one.held_ns, one.wait_ns)
