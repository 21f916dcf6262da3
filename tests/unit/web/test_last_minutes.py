"""What is told of the last minutes: sums since then, of what is traced still or was then."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.kinds import Kind, Mode
from gilscope.model.locks import LockKind, LockMoment, LockObservation
from gilscope.model.observation import Observation
from gilscope.model.timeline import Moment, Span
from gilscope.series.past import Pasts
from gilscope.web.last_minutes import LastMinutes
from gilscope.web.moments import Moments
from support.recordings.gil import (
    CRUNCHING,
    MS,
    SERVING,
    full_mode,
    observation,
    with_holders,
)
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.web.seen import FAR, SECOND, seen

_REFUSALS = (Refusal(99, "old.py", "CPython 3.5 is too old", "Use a later one."),)


def _last_minutes(
    *every: GilObservation, pasts: Pasts | None = None, mode: Mode = Mode.AUTO
) -> LastMinutes:
    return LastMinutes(
        lambda: [Observation(each) for each in every],
        Pasts() if pasts is None else pasts,
        lambda: _REFUSALS,
        mode=mode,
    )


def test_sums_are_those_since_the_observation_nearest_to_that_time() -> None:
    """
    What was lost before is not in it, and it says how long it is about.
    """
    now, pasts = time.monotonic_ns(), Pasts()
    early = seen(at_ns=now - 30 * SECOND, traced_for_s=70)
    pasts.gils.enter(now - 30 * SECOND, [early])
    late = seen(with_holders().observation, at_ns=now)
    more = replace(
        late.totals,
        threads=tuple(
            replace(one, lost={kind: tally + tally for kind, tally in one.lost.items()})
            for one in late.totals.threads
        ),
    )
    session = _last_minutes(replace(late, totals=more), pasts=pasts).session(30)
    (told,) = session.recordings

    assert (30 * SECOND, 30 * SECOND) == (session.duration_ns, told.duration_ns)
    assert 1940 * MS == told.observation.totals.wait_ns


def test_transactions_are_told_since_that_time_too() -> None:
    """
    Beside those of a GIL; one that is asked for alone is told alone.
    """
    now, pasts = time.monotonic_ns(), Pasts()
    early = replace(stm_observation(pid=FAR), since_ns=now - 100 * SECOND)
    early = replace(early, totals=replace(early.totals, at_ns=now - 30 * SECOND))
    late = replace(early, totals=replace(early.totals, at_ns=now, commits=37))
    pasts.transactions.enter(now - 30 * SECOND, [early])
    every = [Observation(seen(pid=7)), Observation(transactions=late)]
    last_minutes = LastMinutes(lambda: every, pasts)

    alone = last_minutes.session(30, {FAR})
    both = last_minutes.session(30)

    ((told,), ()) = (alone.transactions, alone.recordings)
    assert (7, 30 * SECOND) == (told.observation.totals.commits, told.duration_ns)
    assert (1, 1) == (len(both.transactions), len(both.recordings))


def _locked(at_ns: int, since_ns: int, *, ended: bool = False) -> LockObservation:
    locked = lock_recording().observation
    assert locked.totals is not None
    totals = replace(locked.totals, at_ns=at_ns)
    process = replace(locked.process, pid=FAR)
    return replace(locked, process=process, since_ns=since_ns, totals=totals, ended=ended)


def test_locks_are_told_since_that_time_too() -> None:
    """
    Beside the GIL of the process, or alone.
    """
    now, pasts = time.monotonic_ns(), Pasts()
    since_ns = now - 100 * SECOND
    early, late = _locked(now - 30 * SECOND, since_ns), _locked(now, since_ns)
    assert late.totals is not None
    (first, *others) = late.totals.threads
    (wait, *waits) = first.waits
    longer = replace(wait, wait_ns=wait.wait_ns + 5 * MS, waits=wait.waits + 1)
    first = replace(first, waits=(longer, *waits))
    late = replace(late, totals=replace(late.totals, threads=(first, *others)))
    pasts.locks.enter(now - 30 * SECOND, [early])
    every = [Observation(seen(at_ns=now), locks=late)]

    session = LastMinutes(lambda: every, pasts).session(30)
    (told,) = session.locks

    assert told.observation.totals is not None
    ((only,),) = (thread.waits for thread in told.observation.totals.threads)
    assert (5 * MS, 1, LockKind.OBJECT) == (only.wait_ns, only.waits, only.kind)
    assert (30 * SECOND, 1) == (told.duration_ns, len(session.recordings))
    assert session.is_one_process


def test_the_worst_moment_of_locks_is_of_these_minutes_too() -> None:
    """
    It is asked for since they began, and knows how many waits it has missed since then.
    """
    now, asked = time.monotonic_ns(), []

    def moment(pid: int, since_ns: int) -> LockMoment:
        asked.append((pid, since_ns))
        return LockMoment(now - 100 * MS, now, (), (), dropped=99)

    late = _locked(now, now - 100 * SECOND)
    assert late.totals is not None
    late = replace(late, totals=replace(late.totals, lost_events={"span": 3}))
    last_minutes = LastMinutes(
        lambda: [Observation(locks=late)], Pasts(), moments=Moments(locks=moment)
    )
    (told,) = last_minutes.session(100).locks

    assert [(late.process.pid, late.since_ns)] == asked
    assert told.worst is not None
    assert 3 == told.worst.dropped
    assert abs(time.time_ns() - told.ended_ns) < 60 * SECOND


def test_locks_of_which_there_is_nothing_to_tell() -> None:
    """
    A Python too old for them, and one that has ended before.
    """
    now = time.monotonic_ns()
    every = [
        Observation(seen(pid=7), locks=lock_recording(has_totals=False).observation),
        Observation(locks=_locked(now - 60 * SECOND, now - 100 * SECOND, ended=True)),
    ]

    assert () == LastMinutes(lambda: every, Pasts()).session(30).locks


def test_windows_are_no_sum_of_all_holds() -> None:
    """
    In auto mode the holds that were seen stand for others; in full mode they are all.
    """
    held = seen(full_mode().observation)
    auto, full = (
        _last_minutes(held, mode=mode).session(100).recordings[0].observation.totals
        for mode in (Mode.AUTO, Mode.FULL)
    )

    assert {None} == {gil.holds for gil in auto.gils}
    assert (None, None) == (auto.observed_ns, auto.threads[0].held)
    assert all(gil.holds is not None and gil.holds.finished.count for gil in full.gils)


def test_windows_tell_how_often_threads_acquired_it() -> None:
    """
    About so many times, of which a convoy is a share.
    """
    held = seen(full_mode().observation, traced_for_s=2)
    held = replace(held, totals=replace(held.totals, observed_ns=SECOND // 5))
    numbers = {one.tid: one.held.count for one in held.totals.threads if one.held is not None}
    (told,) = _last_minutes(held).session(100).recordings

    assert {tid: number * 10 for tid, number in numbers.items() if number >= 10} == {
        one.tid: one.acquires_about
        for one in told.observation.totals.threads
        if one.acquires_about is not None
    }


def test_processes_that_ended_before_are_left_out() -> None:
    """
    As are all others, and what was refused, where one was asked for.
    """
    now = time.monotonic_ns()
    ended = [
        replace(seen(observation(), FAR + ago_s, at_ns=now - ago_s * SECOND), ended=True)
        for ago_s in (5, 50)
    ]
    last_minutes = _last_minutes(seen(), *ended)
    told: Sequence[tuple[set[int], int]] = [
        ({each.observation.process.pid for each in session.recordings}, len(session.refusals))
        for session in (last_minutes.session(10), last_minutes.session(10, {FAR}))
    ]

    assert [({FAR, FAR + 5}, 1), ({FAR}, 0)] == told


@pytest.mark.parametrize(("mode", "holds"), [(Mode.AUTO, 0), (Mode.FULL, 1)])
def test_the_worst_moment_of_these_minutes(mode: Mode, holds: int) -> None:
    """
    It is asked for since they began; holds that windows saw are no more than a part of them.
    """
    now, asked = time.monotonic_ns(), []

    def moment(pid: int, since_ns: int) -> Moment:
        asked.append((pid, since_ns))
        spans = (
            Span(1, 0, now - 40 * MS, now - 10 * MS, Kind.CONVOY, SERVING, CRUNCHING),
            Span(2, 0, now - 50 * MS, now - 10 * MS, None),
        )
        return Moment(now - 100 * MS, now, spans, chosen_among=2, has_holds=True)

    convoy = seen(at_ns=now)
    last_minutes = LastMinutes(
        lambda: [Observation(convoy)], Pasts(), mode=mode, moments=Moments(gil=moment)
    )
    (told,) = last_minutes.session(100).recordings

    assert [(FAR, convoy.since_ns)] == asked
    assert told.worst is not None
    assert (bool(holds), 1 + holds) == (told.worst.has_holds, len(told.worst.spans))
