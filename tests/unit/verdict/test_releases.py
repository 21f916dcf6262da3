"""Calls that should not release the GIL, and calls that should."""

from dataclasses import replace

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import BriefRelease, HeldUp, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.model.stack import Stack, StackState
from gilscope.verdict.releases import KeepingCall, brief_releases, keeping_calls
from support.recordings.gil import CRUNCHING, MS, SERVING, full_mode, stack

_SECOND_NS = 1000 * MS


def _with(*releases: BriefRelease) -> Recording:
    return replace(full_mode(), brief_releases=releases, duration_ns=_SECOND_NS)


def test_releases_are_told_by_line() -> None:
    """
    Stacks that differ further out are put together; what costs little is left out.
    """
    elsewhere = stack(("handle", "/srv/app.py", 11, 13), ("main", "/srv/app.py", 40, 41))
    found = brief_releases(
        _with(
            BriefRelease(SERVING, 20_000, Tally(6 * MS, 1)),
            BriefRelease(elsewhere, 30_000, Tally(5 * MS, 2)),
            BriefRelease(CRUNCHING, 10_000, Tally(9 * MS, 2)),
            BriefRelease(Stack((), StackState.UNKNOWN), 10_000, Tally(90 * MS, 2)),
        )
    )

    assert (BriefRelease(SERVING, 50_000, Tally(11 * MS, 3)),) == found


def test_releases_that_were_not_seen_are_not_known() -> None:
    """
    None of them is something else.
    """
    assert brief_releases(replace(full_mode(), brief_releases=None)) is None
    assert () == brief_releases(_with())


def test_calls_that_keep_it_are_told_by_what_they_do() -> None:
    """
    In C and in the kernel, with what others have waited meanwhile.
    """
    deflate, read = HoldState(State.NATIVE, "libz deflate"), HoldState(State.SYSCALL, "read")
    held_up = (
        HeldUp(CRUNCHING, Kind.CONVOY, deflate, 30 * MS),
        HeldUp(CRUNCHING, Kind.PREEMPTION, deflate, 20 * MS),
        HeldUp(CRUNCHING, Kind.CONVOY, read, 10 * MS),
        HeldUp(SERVING, Kind.CONVOY, read, 9 * MS),
        HeldUp(CRUNCHING, Kind.CONVOY, HoldState(State.PYTHON), 500 * MS),
        HeldUp(CRUNCHING, Kind.CONVOY, HoldState(State.NO_CPU), 500 * MS),
    )
    totals = replace(full_mode().observation.totals, held_up=held_up)
    own = CRUNCHING.frames[0]

    assert (
        KeepingCall(own, CRUNCHING, State.NATIVE, "libz deflate", 50 * MS),
        KeepingCall(own, CRUNCHING, State.SYSCALL, "read", 10 * MS),
    ) == keeping_calls(totals, EVERYBODYS, _SECOND_NS)
