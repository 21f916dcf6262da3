"""From the tables of the kernel to totals."""

from dataclasses import replace

from gilscope.model.gil import Tally
from gilscope.model.histogram import slot_of
from gilscope.model.transactions import Library, Method, StmTotals
from gilscope.transactions.totals import totals_of
from support.recordings.transactions import MS, raw, stm_observation


def _totals(library: Library, method: Method) -> StmTotals:
    return stm_observation(library, method).totals


def test_events_show_everything_that_is_no_matter_of_libitm() -> None:
    """
    Counts, times and waits are those of the tables; restarts and cancels are unknown.
    """
    totals = _totals(Library.RPYTHON, Method.EVENTS)

    assert (30, 10, 9) == (totals.commits, totals.aborts, totals.conflicts)
    assert totals.committed is not None
    assert totals.aborted is not None
    assert (30, 60 * MS) == (totals.committed.slots[slot_of(2 * MS)], totals.committed.sum_ns)
    assert 10 == totals.aborted.slots[slot_of(MS)]
    assert totals.waits is not None
    assert Tally(20 * MS, 4) == totals.waits["STM_WAIT_FREE_SEGMENT"]
    assert (None, None) == (totals.restarts, totals.cancels)


def test_what_a_method_does_not_see_is_not_zero() -> None:
    """
    Entries show neither times of commits nor waits, the shared library shows no aborts.
    """
    entries = _totals(Library.RPYTHON, Method.ENTRIES)
    shared = _totals(Library.LIBITM, Method.NAMES)

    assert (None, None, None) == (entries.committed, entries.waits, entries.conflicts)
    assert 10 == entries.aborts
    assert (None, None, None) == (shared.aborts, shared.aborted, shared.restarts)
    assert 3 == shared.cancels


def test_restarts_have_the_names_of_the_library() -> None:
    """
    Numbers that libitm does not have are under other; what has not occurred is left out.
    """
    totals = _totals(Library.LIBITM, Method.RESTARTS)

    assert {"LOCKED_READ": 7, "VALIDATE_COMMIT": 2, "other": 1} == totals.restarts


def test_reasons_without_room_are_under_other() -> None:
    """
    The most frequent reason is first, what has no name is last.
    """
    totals = _totals(Library.RPYTHON, Method.EVENTS)

    assert [("time", 4), ("open", 1), ("other", 2)] == list(totals.inevitable.items())


def test_threads_are_listed_by_commits() -> None:
    """
    The busiest thread is first, with the kernel's name for it.
    """
    threads = _totals(Library.RPYTHON, Method.EVENTS).threads

    assert [(12, "worker", 16), (11, "worker", 15)] == [
        (thread.tid, thread.name, thread.committed.count) for thread in threads
    ]


def test_totals_keep_the_instant() -> None:
    """
    The time is that at which the tables were read.
    """
    tables = raw()

    assert tables.at_ns == totals_of(stm_observation().process, tables, (), {}).at_ns


def test_reasons_are_labels() -> None:
    """
    Two reasons of which the same can be shown are one: no series is there twice.
    """
    tables = replace(raw(), reasons={"ti\x1bme": 3, "time\u202e": 2, "open": 1})

    totals = totals_of(stm_observation().process, tables, (), {})

    assert [("time", 5), ("open", 1), ("other", 2)] == list(totals.inevitable.items())


def test_places_are_reasons_beside_those_in_words() -> None:
    """
    What has called counts as a reason, and all are ranked together.
    """
    totals = totals_of(stm_observation().process, raw(), (), {"at call_write": 3})

    assert {"time": 4, "at call_write": 3, "other": 2, "open": 1} == dict(totals.inevitable)
