"""What is known of one program with transactions, with the kernel's tables and probes made up."""

from types import SimpleNamespace
from typing import Any

from gilscope.transactions.process import MOST_DEAD, AttachedProgram
from gilscope.transactions.totals import RawStm
from support.recordings.transactions import MS, raw, stm_observation


def _program(**fields: Any) -> AttachedProgram:
    unused: Any = None
    target: Any = SimpleNamespace(process=stm_observation().process)
    window: Any = SimpleNamespace(is_whole=True, observed_ns=lambda at_ns: at_ns)
    places: Any = SimpleNamespace(named=lambda _: {})
    return AttachedProgram(
        pid=4711,
        pidfd=-1,
        memory=unused,
        since_ns=0,
        target=target,
        window=window,
        places=places,
        **fields,
    )


def _with_dead(tid: int, aborts: int) -> RawStm:
    record = {**raw().threads[11], "aborts": aborts, "exited_ns": 5}
    return RawStm(MS, raw().totals, {tid: record})


def test_time_stands_still_once_it_has_ended() -> None:
    """
    What it lost is divided by the time for which it was there, however long others run on.
    """
    tables = raw()
    tables.threads.clear()

    seen = _program(ended_ns=500 * MS).observation(tables, None)

    assert (500 * MS, 500 * MS) == (seen.totals.at_ns, seen.observed_ns)
    assert 2000 * MS == _program().observation(tables, None).totals.at_ns


def test_dead_threads_are_bounded() -> None:
    """
    Of a server that starts threads for ever those are listed that did the most.
    """
    program = _program()
    for tid in range(3 * MOST_DEAD):
        assert [tid] == program.take_dead(_with_dead(tid, aborts=tid), is_listed=True)

    assert MOST_DEAD <= len(program.dead) <= 2 * MOST_DEAD
    assert {3 * MOST_DEAD - 1, 2 * MOST_DEAD} <= {thread.tid for thread in program.dead}


def test_dead_threads_that_nobody_lists_are_given_up() -> None:
    """
    They are named all the same, to leave the kernel's table.
    """
    program = _program()

    assert [7] == program.take_dead(_with_dead(7, aborts=1), is_listed=False)
    assert [] == program.dead
