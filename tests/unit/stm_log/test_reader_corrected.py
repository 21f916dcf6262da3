"""What gilscope charges to conflicts, in logs short enough to be worked out by hand."""

import pytest

from gilscope.model.stm_log import LogTotals
from gilscope.stm_log.reader import Reading
from support.stm_log.reading import charges, file_of, log_of
from support.stm_log.writer import MS, LogWriter, marker


def _c8() -> LogWriter:
    return LogWriter("L8", "E16")


def _c7() -> LogWriter:
    return LogWriter("L7")


def _totals(writer: LogWriter, semantics: str | None = None) -> LogTotals:
    return log_of(writer.content, semantics).totals


def test_time_of_transactions_goes_by_their_ends() -> None:
    """
    Run time is committed or aborted; waits are paused; time between transactions is nobody's.
    """
    writer = _c8().add(0, 1, "START").add(10 * MS, 1, "COMMIT")
    writer.add(50 * MS, 1, "START").add(55 * MS, 1, "WAIT_SYNC_PAUSE").add(75 * MS, 1, "WAIT_DONE")
    writer.add(77 * MS, 1, "WRITE_READ", marker(3)).add(78 * MS, 1, "ABORT")
    totals = _totals(writer)

    assert (10 * MS, 8 * MS, 20 * MS) == (
        totals.committed_ns,
        totals.aborted_ns,
        totals.paused_ns,
    )
    assert (1, 1, 78 * MS) == (totals.commits, totals.aborts, totals.total_ns)
    assert {"STM_WAIT_SYNC_PAUSE": (20 * MS, 1)} == totals.waits


def test_abort_is_charged_up_to_its_end() -> None:
    """
    What a transaction does between its conflict and its abort is lost as well.
    """
    writer = _c8().add(0, 1, "START").add(10 * MS, 1, "WRITE_READ", marker(3))
    writer.add(14 * MS, 1, "ABORT")

    assert {"WRITE_READ": (14 * MS, 0, 1)} == charges(log_of(writer.content))


def test_wait_is_charged_once() -> None:
    """
    A wait for an inevitable transaction belongs to it, also where another conflict aborts later.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1))
    writer.add(2 * MS, 1, "WAIT_OTHER_INEVITABLE").add(9 * MS, 1, "WAIT_DONE")
    writer.add(10 * MS, 1, "WAIT_SYNC_PAUSE").add(13 * MS, 1, "WAIT_DONE")
    writer.add(14 * MS, 1, "WRITE_READ", marker(2)).add(14 * MS, 1, "ABORT")

    assert {"BECOME_INEVITABLE": (0, 7 * MS, 1), "WRITE_READ": (4 * MS, 3 * MS, 1)} == charges(
        log_of(writer.content)
    )


def test_wait_that_ends_in_an_abort_is_charged() -> None:
    """
    The transaction that waited for an inevitable one may be aborted instead of going on.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1))
    writer.add(2 * MS, 1, "WAIT_OTHER_INEVITABLE").add(9 * MS, 1, "ABORT")
    totals = _totals(writer)

    assert {"BECOME_INEVITABLE": (0, 7 * MS, 1)} == charges(log_of(writer.content))
    assert (2 * MS, 1) == (totals.unexplained_ns, totals.unexplained)


def test_uncontended_attempt_to_become_inevitable_is_no_conflict() -> None:
    """
    Every attempt is in the log; only those that had to wait count.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1)).add(2 * MS, 1, "COMMIT")

    assert {} == charges(log_of(writer.content))


def test_detached_time_is_told() -> None:
    """
    A thread that is outside with its transaction open neither runs it nor is paused.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "DETACH").add(8 * MS, 1, "REATTACH")
    writer.add(9 * MS, 1, "COMMIT")
    totals = _totals(writer)

    assert (2 * MS, 7 * MS, 0) == (totals.committed_ns, totals.detached_ns, totals.paused_ns)


def test_collection_ends_being_detached() -> None:
    """
    A fast path of the JIT comes back without a record; what a thread does shows that it has.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "DETACH").add(5 * MS, 1, "GC_MINOR_START")
    writer.add(6 * MS, 1, "GC_MINOR_DONE").add(9 * MS, 1, "COMMIT")
    totals = _totals(writer)

    assert (5 * MS, 4 * MS, MS) == (totals.committed_ns, totals.detached_ns, totals.minor_gc_ns)


def test_reattaching_can_wait() -> None:
    """
    The entry of such a wait has the event that led to it, and no position.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "DETACH").add(8 * MS, 1, "REATTACH")
    writer.add(8 * MS, 1, "WAIT_OTHER_INEVITABLE").add(10 * MS, 1, "WAIT_DONE")
    log = log_of(writer.add(11 * MS, 1, "COMMIT").content)

    assert {"TRANSACTION_REATTACH": (0, 2 * MS, 1)} == charges(log)
    assert () == log.conflicts[0].markers


def test_wait_for_a_segment_is_told() -> None:
    """
    It comes before the transaction that it delays, and is no part of it.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "COMMIT").add(2 * MS, 1, "WAIT_FREE_SEGMENT")
    writer.add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "START").add(12 * MS, 1, "COMMIT")
    totals = _totals(writer)

    assert (7 * MS, 0, 3 * MS) == (
        totals.paused_outside_ns,
        totals.paused_ns,
        totals.committed_ns,
    )
    assert {"STM_WAIT_FREE_SEGMENT": (7 * MS, 1)} == totals.waits


def test_log_can_begin_within_a_transaction() -> None:
    """
    The first record of a thread may be anything; no time before it is charged.
    """
    writer = _c8().add(0, 1, "DETACH").add(5 * MS, 1, "REATTACH").add(7 * MS, 1, "COMMIT")
    writer.add(8 * MS, 2, "COMMIT").add(9 * MS, 3, "GC_MINOR_DONE").add(12 * MS, 3, "COMMIT")
    totals = _totals(writer)

    assert (5 * MS, 5 * MS, 3) == (totals.committed_ns, totals.detached_ns, totals.commits)
    assert 0 == totals.minor_gc_ns


def test_transaction_without_an_end_is_told() -> None:
    """
    Neither committed nor aborted: it began, and the log ends or another one begins.
    """
    writer = _c8().add(0, 1, "START").add(4 * MS, 1, "INEVITABLE").add(5 * MS, 1, "START")
    writer.add(8 * MS, 1, "COMMIT").add(9 * MS, 2, "START").add(11 * MS, 2, "INEVITABLE")
    totals = _totals(writer)

    assert (3 * MS, 5 * MS + 2 * MS) == (totals.committed_ns, totals.unfinished_ns)


@pytest.mark.parametrize("table", ["C13", "D14", "E16"])
def test_commit_without_a_record_is_told(table: str) -> None:
    """
    An inevitable transaction cannot be aborted: a START that follows it says that it was committed.
    """
    writer = LogWriter("L8", table).add(0, 1, "START").add(4 * MS, 1, "INEVITABLE", marker(1))
    writer.add(5 * MS, 1, "START").add(8 * MS, 1, "COMMIT")
    # Another one has come first, and this one waits for it.
    writer.add(9 * MS, 1, "START").add(10 * MS, 1, "INEVITABLE", marker(1))
    writer.add(10 * MS, 1, "WAIT_OTHER_INEVITABLE").add(12 * MS, 1, "START")
    # Of this one nothing is known.
    writer.add(16 * MS, 1, "START").add(17 * MS, 1, "COMMIT")
    # And this one may be going on.
    writer.add(18 * MS, 1, "START").add(19 * MS, 1, "INEVITABLE", marker(1))
    reading = Reading(events_table=table)
    (log,) = file_of(writer.content, reading).logs
    totals = log.totals

    assert (1, 5 * MS) == (totals.unlogged_commits, totals.unlogged_commit_ns)
    assert (2, 4 * MS) == (totals.commits, totals.committed_ns)
    # 1 ms + 2 ms of wait for the other one, 4 ms, and 1 ms.
    assert 5 * MS + 3 * MS + 4 * MS + MS == totals.unfinished_ns


def test_detached_transaction_without_an_end_was_committed() -> None:
    """
    Only an inevitable one can be left open; time outside is not its own.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1)).add(2 * MS, 1, "DETACH")
    totals = _totals(writer.add(9 * MS, 1, "START").add(10 * MS, 1, "COMMIT"))

    assert (1, 2 * MS, 7 * MS) == (
        totals.unlogged_commits,
        totals.unlogged_commit_ns,
        totals.detached_ns,
    )


def test_abort_without_a_conflict_is_told() -> None:
    """
    Its time is aborted, and no entry has it.
    """
    totals = _totals(_c8().add(0, 1, "START").add(4 * MS, 1, "ABORT"))

    assert (4 * MS, 4 * MS, 1) == (totals.aborted_ns, totals.unexplained_ns, totals.unexplained)


def test_collection_that_an_abort_cuts_short_is_forgotten() -> None:
    """
    Its end never comes, and the end of a later one is not its end.
    """
    writer = _c8().add(0, 1, "START").add(MS, 1, "GC_MAJOR_START")
    writer.add(2 * MS, 1, "WRITE_READ", marker(1)).add(2 * MS, 1, "ABORT")
    writer.add(50 * MS, 1, "START").add(51 * MS, 1, "GC_MAJOR_DONE").add(52 * MS, 1, "COMMIT")

    assert 0 == _totals(writer).major_gc_ns


def test_pause_of_c7_does_not_end_a_conflict() -> None:
    """
    A thread that waits for the other side and is aborted after it has lost that time to it.
    """
    writer = _c7().add(0, 1, "START").add(3 * MS, 1, "CONTENTION_INEVITABLE", "a", "b", other=2)
    writer.add(3 * MS, 1, "WAIT_CONTENTION").add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "ABORT")

    assert {"INEVITABLE": (4 * MS, 6 * MS, 1)} == charges(log_of(writer.content))


def test_safe_point_of_c7_is_no_part_of_a_conflict() -> None:
    """
    A thread that is stopped for a collection of another one waits for that, and commits.
    """
    writer = _c7().add(0, 1, "START").add(3 * MS, 1, "CONTENTION_INEVITABLE", "a", "b", other=2)
    writer.add(3 * MS, 1, "WAIT_SYNC_PAUSE").add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "COMMIT")

    assert {"INEVITABLE": (0, 0, 1)} == charges(log_of(writer.content))


def test_abort_of_the_other_side_is_charged_to_the_conflict() -> None:
    """
    The thread that wins writes the conflict; the one that loses, its own abort.
    """
    writer = _c7().add(0, 1, "START").add(0, 2, "START")
    writer.add(5 * MS, 1, "WRITE_READ", "a", other=2).add(5 * MS, 1, "ABORTING_OTHER")
    writer.add(6 * MS, 1, "COMMIT").add(8 * MS, 2, "ABORT")
    log = log_of(writer.content)

    assert {"WRITE_READ": (8 * MS, 0, 1)} == charges(log)
    assert (6 * MS, 8 * MS, 0) == (
        log.totals.committed_ns,
        log.totals.aborted_ns,
        log.totals.unexplained,
    )


def test_s0_has_nothing_to_correct() -> None:
    """
    On request figures are those of the two texts, pauses included.
    """
    writer = _c7().add(0, 1, "START").add(3 * MS, 1, "CONTENTION_INEVITABLE", "a", "b", other=2)
    writer.add(3 * MS, 1, "WAIT_CONTENTION").add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "ABORT")

    assert {"INEVITABLE": (10 * MS, 0, 1)} == charges(log_of(writer.content, "S0"))
    assert 10 * MS == _totals(writer, "S0").cpu_ns


def test_clock_that_goes_back_takes_nothing_away() -> None:
    """
    A duration is never less than nothing.
    """
    writer = _c7().add(10 * MS, 1, "START").add(9 * MS, 1, "WRITE_READ", "a", other=2)
    log = log_of(writer.add(8 * MS, 1, "ABORT").content)

    assert {"WRITE_READ": (0, 0, 1)} == charges(log)
    assert (0, 2 * MS) == (log.totals.aborted_ns, log.totals.total_ns)
