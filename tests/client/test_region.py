"""What regions say, where the figures are known."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from gilscope_client import connect, region

if TYPE_CHECKING:
    from client.conftest import FakeAgent


def _figures(one: Any) -> tuple[int | None, int | None, int | None]:
    return one.waits, one.wait_ns, one.held_ns


_UNKNOWN = (None, None, None)
_PR_SET_SECCOMP, _SECCOMP_MODE_STRICT = 22, 1


def test_block_has_what_its_thread_waits_inside(fake_agent: "FakeAgent") -> None:
    """
    Neither what came before nor what comes after, nor another thread's.
    """
    other = threading.Thread(target=lambda: fake_agent.wait(1000))
    fake_agent.wait(1)
    with region("block") as one:
        assert _UNKNOWN == _figures(one)
        fake_agent.wait(20)
        other.start()
        other.join()
        fake_agent.wait(300)
    fake_agent.wait(4000)

    assert (2, 320, None) == _figures(one)


def test_first_wait_of_a_thread_counts(fake_agent: "FakeAgent") -> None:
    """
    Wherever its place is: the agent gives it one only then.
    """
    with region() as one:
        fake_agent.wait(5, at=7)

    assert (1, 5, None) == _figures(one)


def test_regions_lie_inside_of_each_other(fake_agent: "FakeAgent") -> None:
    """
    The outer one has the waits of the inner ones too, and one region may be used again.
    """
    inner = region("inner")
    with region("outer") as outer:
        fake_agent.wait(1)
        with inner:
            fake_agent.wait(20)
        first = _figures(inner)
        with inner:
            pass

    assert ((1, 20, None), (0, 0, None)) == (first, _figures(inner))
    assert (2, 21, None) == _figures(outer)


def test_error_passes_and_the_figures_are_there(fake_agent: "FakeAgent") -> None:
    """
    Also of a block that fails.
    """
    one = region()

    def fail() -> None:
        with one:
            fake_agent.wait(3)
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert (1, 3, None) == _figures(one)


@pytest.mark.parametrize("end", ["die", "stop", "leave_out"])
def test_figures_that_may_lack_something_are_none(fake_agent: "FakeAgent", end: str) -> None:
    """
    The agent has died or stopped, or had no place for a thread that has none.
    """
    with region() as one:
        getattr(fake_agent, end)()

    assert _UNKNOWN == _figures(one)


def test_region_after_the_death_has_none(fake_agent: "FakeAgent") -> None:
    """
    Nobody reads that memory again; there is nothing to connect to.
    """
    with region():
        fake_agent.die()
    fake_agent.wait(1)
    with region() as one:
        fake_agent.wait(1)

    assert _UNKNOWN == _figures(one)
    assert not connect(0)


def test_region_begun_with_an_earlier_agent_has_none(fake_agent: "FakeAgent") -> None:
    """
    What was counted by two agents is not added up.
    """
    with region() as outer:
        fake_agent.wait(1)
        fake_agent.die()
        with region() as between:
            pass
        fake_agent.begin()
        with region() as inner:
            fake_agent.wait(1)

    assert (_UNKNOWN, _UNKNOWN) == (_figures(outer), _figures(between))
    assert (1, 1, None) == _figures(inner)


def test_other_thread_cannot_end_it(fake_agent: "FakeAgent") -> None:
    """
    Its waits are not those of the one that has begun.
    """
    one = region()
    one.__enter__()
    fake_agent.wait(1)

    def end() -> None:
        with region():
            one.__exit__(None, None, None)

    other = threading.Thread(target=end)
    other.start()
    other.join()

    assert _UNKNOWN == _figures(one)


def test_place_of_another_thread_is_not_read(fake_agent: "FakeAgent") -> None:
    """
    One that may lie where the thread's own may.
    """
    tid = threading.get_native_id()
    fake_agent.write(tid + 1, 0, 1000, 10)
    with region() as one:
        fake_agent.write(tid + 1, 0, 2000, 20)
        fake_agent.write(tid - 1, 3, 2000, 20)

    assert (0, 0, None) == _figures(one)


def test_child_does_not_read_what_its_parent_reads(fake_agent: "FakeAgent") -> None:
    """
    Of the child nothing is known there.
    """
    with region() as ours:
        fake_agent.wait(1)
        child = os.fork()
        if child == 0:
            with region() as own:
                pass
            ours.__exit__(None, None, None)
            os._exit((_UNKNOWN, _UNKNOWN) != (_figures(own), _figures(ours)))
        _, status = os.waitpid(child, 0)

    assert 0 == os.waitstatus_to_exitcode(status)
    assert (1, 1, None) == _figures(ours)


def test_region_takes_no_system_call(fake_agent: "FakeAgent") -> None:
    """
    The kernel kills the child at the first one but read and write, so also where it ends.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        fake_agent.begin()
        _enter_regions()
        ctypes.CDLL(None).prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_STRICT)
        known = _enter_regions()
        os.write(theirs, b"%d" % known)
        os.getppid()
    os.close(theirs)
    _, status = os.waitpid(child, 0)

    assert b"100" == os.read(ours, 8)
    assert -signal.SIGKILL == os.waitstatus_to_exitcode(status)
    os.close(ours)


def _enter_regions() -> int:
    """Return how many of them had figures."""
    known = 0
    for _ in range(100):
        with region() as one:
            pass
        known += one.waits == 0
    return known


def test_each_call_of_a_decorated_function_is_a_region(fake_agent: "FakeAgent") -> None:
    """
    Which the function that is named gets, with the name that it was given or else its own.
    """
    seen: list[Any] = []

    @region(then=seen.append)
    def recursive(depth: int) -> int:
        """Say so."""
        fake_agent.wait(depth)
        return recursive(depth - 1) if depth > 1 else 7

    assert 7 == recursive(3)
    assert [(1, 1), (2, 3), (3, 6)] == [(one.waits, one.wait_ns) for one in seen]
    assert {recursive.__qualname__} == {one.name for one in seen}
    assert ("recursive", "Say so.") == (recursive.__name__, recursive.__doc__)


def test_generator_is_no_region() -> None:
    """
    It is told where it is decorated, and not by wrong figures.
    """
    with pytest.raises(TypeError, match="generator"):

        @region()
        def numbers() -> Iterator[int]:
            yield 1


def test_coroutine_has_the_waits_of_its_own_steps(fake_agent: "FakeAgent") -> None:
    """
    Not those of other tasks while it is suspended.
    """
    seen: list[Any] = []

    @region("own", then=seen.append)
    async def own() -> str:
        for _ in range(3):
            fake_agent.wait(1)
            await asyncio.sleep(0)
        return "answer"

    async def other() -> None:
        for _ in range(5):
            fake_agent.wait(1000)
            await asyncio.sleep(0)

    async def both() -> Any:
        return await asyncio.gather(own(), other(), own())

    assert asyncio.iscoroutinefunction(own)
    assert ["answer", None, "answer"] == asyncio.run(both())
    assert [("own", 3, 3)] * 2 == [(one.name, one.waits, one.wait_ns) for one in seen]


def test_coroutine_that_fails_or_is_cancelled(fake_agent: "FakeAgent") -> None:
    """
    It sees the error where it would have, and has its figures.
    """
    seen: list[Any] = []

    async def ends(error: type[BaseException] | None) -> None:
        try:
            fake_agent.wait(1)
            if error is not None:
                raise error
            await asyncio.Event().wait()
        finally:
            fake_agent.wait(20)

    async def play() -> None:
        with pytest.raises(KeyError):
            await region("fails", then=seen.append).run(ends(KeyError))
        task = asyncio.ensure_future(region("cancelled", then=seen.append).run(ends(None)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())

    assert [("fails", 2, 21), ("cancelled", 2, 21)] == [
        (one.name, one.waits, one.wait_ns) for one in seen
    ]


def test_block_around_an_await_has_none_if_others_have_run(fake_agent: "FakeAgent") -> None:
    """
    Their waits are its thread's too; an await that comes back at once lets nobody run.
    """

    async def at_once() -> None:
        fake_agent.wait(5)

    async def play() -> tuple[Any, Any, Any]:
        with region() as suspended:
            await asyncio.sleep(0)
        with region() as straight:
            await at_once()
        with ExitStack() as stack:
            entered = stack.enter_context(region())
            await asyncio.sleep(0)
        return suspended, straight, entered

    suspended, straight, entered = asyncio.run(play())

    assert (_UNKNOWN, (1, 5, None), _UNKNOWN) == (
        _figures(suspended),
        _figures(straight),
        _figures(entered),
    )


def test_block_in_a_coroutine_of_trio_has_none(
    fake_agent: "FakeAgent", monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nobody can say whether it was suspended.
    """
    monkeypatch.setitem(sys.modules, "trio", sys)

    async def play() -> Any:
        with region() as one:
            fake_agent.wait(1)
        return one

    with pytest.raises(StopIteration) as end:
        play().send(None)

    assert _UNKNOWN == _figures(end.value.value)


def test_without_an_agent_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    There is no socket, or something else in its place.
    """
    for path in ("/nowhere/at/all", "/dev/null", "x" * 1000):
        monkeypatch.setenv("GILSCOPE_REGIONS", path)
        with region() as one:
            pass

        assert _UNKNOWN == _figures(one)
        assert not connect(0)
