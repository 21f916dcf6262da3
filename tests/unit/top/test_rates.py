"""What happened between two snapshots."""

from dataclasses import replace

from gilscope.model.gil import GilObservation, ProcessTotals, Tally, ThreadTotals
from gilscope.model.kinds import Kind
from gilscope.top.rates import ProcessRates, RoleRates, rates
from support.recordings.gil import (
    CRUNCHING,
    MS,
    PROCESS,
    SERVING,
    full_mode,
    gil,
    thread,
    with_edges,
)


def _seen(
    at_ms: int, *threads: ThreadTotals, pid: int = 7, since_ms: int = 0, invalid: str = ""
) -> GilObservation:
    totals = ProcessTotals(at_ms * MS, threads, (), {})
    process = replace(PROCESS, pid=pid)
    return GilObservation(process, since_ms * MS, totals, invalid=invalid)


def _waiter(
    convoy_ms: int, tid: int = 1, role: str | None = "serve", *, waiting_ms: int = 0
) -> ThreadTotals:
    return thread(tid, role, {Kind.CONVOY: Tally(convoy_ms * MS, 1)}, waiting_ns=waiting_ms * MS)


def _one(before: list[GilObservation], now: GilObservation) -> ProcessRates:
    (process,) = rates(before, [now])
    return process


def _lost_ms(process: ProcessRates) -> dict[str, float]:
    return {role.role: role.lost_ns / MS for role in process.roles}


def test_time_lost_is_that_of_the_interval() -> None:
    """
    What was lost before the first snapshot is not lost again.
    """
    process = _one([_seen(1000, _waiter(300))], _seen(1500, _waiter(550, waiting_ms=40)))

    assert 500 * MS == process.elapsed_ns
    assert (250 * MS, 250 * MS) == (process.lost_ns, process.convoy_ns)
    assert (1, 40 * MS) == (process.waiting, process.longest_wait_ns)
    assert (RoleRates("serve", 1, 250 * MS, 250 * MS, 1, 40 * MS, None),) == process.roles


def test_new_process_is_measured_from_its_attachment_on() -> None:
    """
    The first look has an interval of its own.
    """
    process = _one([_seen(1000, pid=8)], _seen(1500, _waiter(100), since_ms=1300))

    assert (200 * MS, 100 * MS) == (process.elapsed_ns, process.lost_ns)


def test_process_that_was_attached_anew_is_a_new_one() -> None:
    """
    The same pid with another beginning counts from zero, and so does its interval.
    """
    process = _one([_seen(1000, _waiter(900))], _seen(2000, _waiter(50), since_ms=1900))

    assert (100 * MS, 50 * MS) == (process.elapsed_ns, process.lost_ns)


def test_process_that_has_gone_is_not_shown() -> None:
    """
    Only what is there now has rates.
    """
    assert () == rates([_seen(1000, _waiter(300))], [])


def test_process_that_has_ended_stands_still() -> None:
    """
    Its last look has the rest of its life; after that no time passes for it any more.
    """
    alive, last = _seen(1000, _waiter(300)), _seen(1250, _waiter(400))
    ended = replace(last, ended=True)

    first, second = _one([alive], ended), _one([ended], ended)

    assert (250 * MS, 100 * MS, True) == (first.elapsed_ns, first.lost_ns, first.ended)
    assert (0, 0, True) == (second.elapsed_ns, second.lost_ns, second.ended)


def test_process_without_figures_has_none() -> None:
    """
    Where numbers cannot be trusted there is the reason, and nothing else.
    """
    process = _one([_seen(1000, _waiter(300))], _seen(2000, invalid="no GIL"))

    assert ProcessRates(process.process, 0, 0, invalid="no GIL") == process


def test_process_that_gets_its_figures_is_measured_from_its_attachment_on() -> None:
    """
    A look without figures is no beginning of an interval.
    """
    process = _one(
        [_seen(1900, since_ms=1000, invalid="no GIL")], _seen(2000, _waiter(100), since_ms=1000)
    )

    assert (1000 * MS, 100 * MS) == (process.elapsed_ns, process.lost_ns)


def test_counters_that_fall_or_vanish_stand_still() -> None:
    """
    Nothing is ever lost backwards, neither by a thread nor at a pair.
    """
    before = with_edges().observation
    edges = before.totals.edges
    fallen = replace(edges[0], lost=Tally(1000 * MS, 80))
    now = replace(
        before,
        totals=replace(before.totals, at_ns=2000 * MS, threads=(), edges=(fallen, *edges[2:])),
    )

    process = _one([before], now)

    assert (0, ()) == (process.lost_ns, process.roles)
    assert {Tally()} == {pair.lost for pair in process.pairs}
    assert 5 == len(process.pairs)


def test_threads_of_a_role_are_added_up() -> None:
    """
    Roles come costliest first, with the number of their threads that are alive.
    """
    before = _seen(1000, _waiter(100, 1), _waiter(100, 2, "crunch"))
    now = _seen(
        2000,
        _waiter(150, 1),
        _waiter(400, 2, "crunch", waiting_ms=5),
        _waiter(100, 3, "crunch", waiting_ms=9),
    )

    crunch, serve = _one([before], now).roles

    assert RoleRates("crunch", 2, 400 * MS, 400 * MS, 2, 9 * MS, None) == crunch
    assert RoleRates("serve", 1, 50 * MS, 50 * MS, 0, 0, None) == serve


def test_dead_threads_of_a_role_lose_nothing_more() -> None:
    """
    When threads die, and are added up under no number, their role has lost what they lost since.
    """
    before = _seen(1000, _waiter(100, 1), _waiter(200, 2))
    dead = replace(_waiter(320, 0), is_alive=False)

    process = _one([before], _seen(2000, dead))

    assert (RoleRates("serve", 0, 20 * MS, 20 * MS, 0, 0, None),) == process.roles
    assert () == _one([_seen(2000, dead)], _seen(3000, dead)).roles


def test_thread_that_gets_its_role_brings_its_past_along() -> None:
    """
    The time that it lost while it was too young for a role is not lost by the role again.
    """
    before = _seen(1000, _waiter(500, 1, None))

    assert {"serve": 60.0} == _lost_ms(_one([before], _seen(2000, _waiter(560, 1))))
    assert {"starting": 500.0} == _lost_ms(_one([], before))


def test_number_of_a_dead_thread_that_is_used_again() -> None:
    """
    The new thread does not get the past of the old one, nor the old role its time once more.
    """
    before = _seen(1000, _waiter(500, 1, "old"))
    now = _seen(2000, replace(_waiter(510, 0, "old"), is_alive=False), _waiter(30, 1, "new"))

    assert {"new": 30.0, "old": 10.0} == _lost_ms(_one([before], now))


def test_convoy_is_never_more_than_what_was_lost() -> None:
    """
    A wait in flight becomes a convoy with all of its time, of which a part was lost before.
    """
    before = _seen(1000, thread(1, "serve", {Kind.BLOCKING_CALL: Tally(4 * MS)}))
    now = _seen(1002, thread(1, "serve", {Kind.CONVOY: Tally(6 * MS)}))

    process = _one([before], now)

    assert (2 * MS, 2 * MS) == (process.lost_ns, process.convoy_ns)


def test_pairs_have_the_interval_and_all_the_time() -> None:
    """
    The costliest pair of the interval comes first, whatever it lost before.
    """
    before = with_edges().observation
    edges = list(before.totals.edges)
    edges[1] = replace(edges[1], lost=edges[1].lost + Tally(90 * MS, 3))
    now = replace(before, totals=replace(before.totals, edges=tuple(edges)))

    first, second, *_ = _one([before], now).pairs

    assert (Tally(90 * MS, 3), Tally(440 * MS, 33)) == (first.lost, first.total)
    assert (Tally(), Tally(1100 * MS, 90)) == (second.lost, second.total)
    assert (Kind.CONVOY, SERVING, CRUNCHING) == (second.kind, second.waiter, second.holder)


def test_holds_are_those_of_the_interval() -> None:
    """
    The lock's time counts by the clock, that of roles by the windows; the hold in flight is now's.
    """
    now = full_mode().observation
    threads = tuple(
        replace(each, held=Tally(each.held.ns // 2, 1)) for each in now.totals.threads if each.held
    )
    lock = replace(now.totals.gils[0], held_ns=1500 * MS)
    totals = replace(
        now.totals, at_ns=1500 * MS, threads=threads, gils=(lock,), observed_ns=1600 * MS
    )

    process = _one([replace(now, totals=totals)], now)

    assert (300 * MS, 400 * MS) == (process.held_ns, process.observed_ns)
    assert (3 * MS, 0.0013) == (process.longest_hold_ns, process.overhead)
    assert {"serve (app.py:8)": 25 * MS, "crunch (app.py:2)": 875 * MS} == {
        role.role: role.held_ns for role in process.roles
    }


def test_estimate_of_held_time_is_at_most_the_time_that_passed() -> None:
    """
    Each lock counts for no more than the interval; several of them are added up.
    """
    seen = _seen(1000)
    gils = tuple(replace(gil(number), held_ns=(700 + number) * MS) for number in (0, 1))
    before = replace(seen, totals=replace(seen.totals, gils=gils))
    later = (replace(gils[0], held_ns=900 * MS), replace(gils[1], held_ns=751 * MS))
    now = replace(seen, totals=replace(seen.totals, at_ns=1100 * MS, gils=later))

    assert 150 * MS == _one([before], now).held_ns
