"""Waits that came after a call so short that the GIL need not have been released."""

import pytest

from gilscope.gil.abi import SPAN_IS_HOLD
from gilscope.gil.totals import brief_releases
from gilscope.gil.totals.brief_releases import BRIEF_NS, BriefReleases
from gilscope.model.gil import BriefRelease, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack
from support.recordings.gil import CRUNCHING, MS, SERVING

_PID, _OTHER = 7, 8
_STACKS = {100: SERVING, 101: SERVING, 200: CRUNCHING}


def _wait(
    away_ns: int, wait_ns: int, *, waiter: int = 100, kind: int = Kind.CONVOY.number
) -> dict[str, int]:
    return {
        "tgid": _PID,
        "kind": kind,
        "waiter": waiter,
        "began_ns": MS,
        "ended_ns": MS + wait_ns,
        "away_ns": away_ns,
    }


def _found(*records: dict[str, int], pid: int = _PID) -> tuple[BriefRelease, ...]:
    releases = BriefReleases()
    for record in records:
        releases.add(record)
    return releases.of(pid, _STACKS.__getitem__)


def test_calls_are_added_up_by_stack_the_costliest_first() -> None:
    """
    One stack may have been read several times.
    """
    found = _found(
        _wait(2_000, 4 * MS, waiter=200),
        _wait(20_000, 5 * MS),
        _wait(30_000, 6 * MS, waiter=101),
        _wait(40_000, 50_000, kind=Kind.BLOCKING_CALL.number),
    )

    assert (
        BriefRelease(SERVING, 90_000, Tally(11 * MS + 50_000, 3)),
        BriefRelease(CRUNCHING, 2_000, Tally(4 * MS, 1)),
    ) == found


def test_what_was_worth_a_release_is_left_out() -> None:
    """
    Long calls, short waits, calls that were not seen, and whatever came after no call.
    """
    assert () == _found(
        _wait(BRIEF_NS, 5 * MS),
        _wait(20_000, 20_000),
        _wait(0, 5 * MS),
        _wait(20_000, 5 * MS, kind=Kind.PREEMPTION.number),
        _wait(20_000, 5 * MS, kind=SPAN_IS_HOLD),
    )


def test_processes_are_kept_apart_and_forgotten() -> None:
    """
    A number may be used again.
    """
    releases = BriefReleases()
    releases.add(_wait(20_000, 5 * MS))

    assert () == releases.of(_OTHER, _STACKS.__getitem__)
    assert 1 == len(releases.of(_PID, _STACKS.__getitem__))
    releases.forget(_PID)
    assert () == releases.of(_PID, _STACKS.__getitem__)


def test_stacks_are_bounded() -> None:
    """
    A program may wait in ever new ones.
    """
    releases = BriefReleases()
    for waiter in range(5000):
        releases.add(_wait(20_000, 5 * MS, waiter=waiter))
    asked: list[int] = []

    def stack_of(number: int) -> Stack:
        asked.append(number)
        return SERVING

    (found,) = releases.of(_PID, stack_of)

    # Those beyond are at no stack, whose number is 0, and nothing is left out.
    assert (4096, 5000) == (len(asked), found.waited.count)


def test_no_wait_is_left_out_where_stacks_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What further ones have cost is at an unknown stack.
    """
    monkeypatch.setattr(brief_releases, "_MOST_STACKS", 1)
    releases = BriefReleases()
    for waiter in (100, 200, 300, 100):
        releases.add(_wait(2_000, 4 * MS, waiter=waiter))
    found = releases.of(_PID, lambda number: _STACKS.get(number, UNKNOWN_STACK))

    assert {SERVING: 2, UNKNOWN_STACK: 2} == {each.waiter: each.waited.count for each in found}
    assert 16 * MS == sum(each.waited.ns for each in found)
