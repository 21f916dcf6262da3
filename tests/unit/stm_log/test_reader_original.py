"""The original's figures, with what it loses: S0, S1 and S2 in logs worked out by hand."""

import pytest

from gilscope.reports.stm_log import original
from gilscope.stm_log.reader import Reading
from support.stm_log.golden import GOLDEN_ENTRIES, GoldenEntry
from support.stm_log.reading import charges, original_log, report_of
from support.stm_log.reading import file_of as read_file
from support.stm_log.writer import MS, US, LogWriter, marker


@pytest.mark.parametrize("entry", GOLDEN_ENTRIES, ids=lambda entry: f"{entry.count}x")
def test_golden_entries_are_printed_again(entry: GoldenEntry) -> None:
    """
    A log with the same conflicts gives the entries of the two texts, letter by letter.
    """
    file = read_file(entry.log(), Reading(semantics="S0", is_original=True))

    assert f"\n\n{entry.text}\n\n" in original.render(report_of(file))


def test_s1_charges_a_microsecond_for_each_abort() -> None:
    """
    That is the sleep which follows one, and which no log has.
    """
    writer = LogWriter("L7").add(0, 1, "START").add(3 * MS, 1, "WRITE_WRITE", "a", "b", other=2)

    log = original_log(writer.add(3 * MS, 1, "ABORT").content)

    assert {"WRITE_WRITE": (3 * MS, US, 1)} == charges(log)


def test_s1_forgets_a_conflict_at_the_end_of_a_pause() -> None:
    """
    Any pause is charged to it, and an abort after that to nobody.
    """
    writer = LogWriter("L7").add(0, 1, "START")
    writer.add(3 * MS, 1, "CONTENTION_INEVITABLE", "a", "b", other=2)
    writer.add(3 * MS, 1, "WAIT_SYNC_PAUSE").add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "ABORT")

    log = original_log(writer.content)

    assert {"INEVITABLE": (0, 6 * MS, 1)} == charges(log)
    assert 4 * MS == log.totals.cpu_ns


def test_s1_keeps_a_conflict_of_the_other_side_over_a_pause() -> None:
    """
    Only a thread's own conflict ends with its pause.
    """
    writer = LogWriter("L7").add(0, 1, "START").add(0, 2, "START")
    writer.add(5 * MS, 1, "WRITE_READ", "a", other=2).add(5 * MS, 1, "ABORTING_OTHER")
    writer.add(6 * MS, 2, "WAIT_SYNC_PAUSE").add(7 * MS, 2, "WAIT_DONE").add(8 * MS, 2, "ABORT")

    assert {"WRITE_READ": (7 * MS, US, 1)} == charges(original_log(writer.content))


def test_s1_ignores_threads_until_they_start() -> None:
    """
    What was going on when the log began is charged to nobody, but conflicts count.
    """
    writer = LogWriter("L7").add(0, 1, "WRITE_READ", "a", other=2).add(4 * MS, 1, "COMMIT")

    log = original_log(writer.content)

    assert {"WRITE_READ": (0, 0, 1)} == charges(log)
    assert 0 == log.totals.cpu_ns


def test_s2_charges_at_the_conflict() -> None:
    """
    What lies between a conflict and its abort is in the totals alone.
    """
    writer = LogWriter().add(0, 1, "START").add(10 * MS, 1, "WRITE_READ", marker(3))

    log = original_log(writer.add(14 * MS, 1, "ABORT").content)

    assert {"WRITE_READ": (10 * MS, 0, 1)} == charges(log)
    assert 14 * MS == log.totals.aborted_ns


def test_s2_counts_one_conflict_of_a_transaction() -> None:
    """
    A second one before the abort is not counted, whatever it is about.
    """
    writer = LogWriter().add(0, 1, "START").add(10 * MS, 1, "WRITE_READ", marker(3))
    writer.add(12 * MS, 1, "WRITE_READ", marker(4)).add(14 * MS, 1, "ABORT")
    # What no other version could have written.
    writer.add(15 * MS, 1, "START").add(15 * MS, 1, "GC_MAJOR_START")
    writer.add(15 * MS, 1, "GC_MAJOR_DONE").add(16 * MS, 1, "COMMIT")

    assert [(marker(3),)] == [each.markers for each in original_log(writer.content).conflicts]


def test_s2_charges_a_wait_twice() -> None:
    """
    Once to the inevitable transaction, and once to the conflict that aborts later.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1))
    writer.add(2 * MS, 1, "WAIT_OTHER_INEVITABLE").add(9 * MS, 1, "WAIT_DONE")
    writer.add(14 * MS, 1, "WRITE_READ", marker(2)).add(14 * MS, 1, "ABORT")

    assert {"BECOME_INEVITABLE": (0, 7 * MS, 1), "WRITE_READ": (7 * MS, 7 * MS, 1)} == charges(
        original_log(writer.content)
    )


def test_s2_loses_detached_time_and_waits_for_segments() -> None:
    """
    They are in no total.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "DETACH").add(5 * MS, 1, "REATTACH")
    writer.add(6 * MS, 1, "COMMIT").add(7 * MS, 1, "WAIT_FREE_SEGMENT").add(9 * MS, 1, "WAIT_DONE")
    totals = original_log(writer.add(9 * MS, 1, "START").add(10 * MS, 1, "COMMIT").content).totals

    assert (3 * MS, 0, 0, 0) == (
        totals.committed_ns,
        totals.paused_ns,
        totals.detached_ns,
        totals.paused_outside_ns,
    )


@pytest.mark.parametrize("table", ["C13", "D14", "E16"])
def test_s2_gives_a_start_what_came_before_it(table: str) -> None:
    """
    It forgets the open transaction first: the time since that one's last record is the new one's.
    """
    writer = LogWriter("L8", table).add(0, 1, "START").add(3 * MS, 1, "INEVITABLE", marker(1))
    writer.add(10 * MS, 1, "START").add(12 * MS, 1, "COMMIT")
    writer.add(20 * MS, 1, "START").add(21 * MS, 1, "INEVITABLE", marker(1))
    writer.add(25 * MS, 1, "WAIT_SYNC_PAUSE").add(30 * MS, 1, "START")
    writer.add(31 * MS, 1, "WRITE_READ", marker(2)).add(33 * MS, 1, "ABORT")
    log = original_log(writer.content)
    totals = log.totals

    assert (table, 33 * MS) == (log.events_table, totals.total_ns)
    # Of the first 7 ms are those before its START, and of the second the pause of 5 ms.
    assert (9 * MS, 3 * MS, 5 * MS) == (totals.committed_ns, totals.aborted_ns, totals.paused_ns)
    assert (1, 1) == (totals.commits, totals.aborts)
    assert {"WRITE_READ": (MS, 5 * MS, 1)} == charges(log)


@pytest.mark.parametrize(
    ("table", "committed_ns"), [("C13", 3 * MS), ("D14", 3 * MS), ("E16", 2 * MS), ("X29", 2 * MS)]
)
def test_s2_of_2017_alone_knows_waits_for_segments(table: str, committed_ns: int) -> None:
    """
    Before, what lay between the end of such a wait and the START was the transaction's.
    """
    writer = LogWriter("L8", table).add(0, 1, "WAIT_FREE_SEGMENT").add(7 * MS, 1, "WAIT_DONE")
    writer.add(8 * MS, 1, "START").add(10 * MS, 1, "COMMIT")
    reading = Reading(events_table=table, is_original=True)
    (log,) = read_file(writer.content, reading).logs

    assert (committed_ns, 0, 0) == (
        log.totals.committed_ns,
        log.totals.aborted_ns,
        log.totals.paused_ns,
    )


def test_s2_forgets_a_wait_with_the_attempt_that_it_was_for() -> None:
    """
    A START ends both, and the end of the next wait is charged to nobody.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1))
    writer.add(2 * MS, 1, "WAIT_OTHER_INEVITABLE").add(5 * MS, 1, "START")
    writer.add(9 * MS, 1, "WAIT_DONE").add(10 * MS, 1, "COMMIT")
    log = original_log(writer.content)

    assert {} == charges(log)
    assert (5 * MS, 3 * MS) == (log.totals.committed_ns, log.totals.paused_ns)


def test_s2_keeps_a_wait_over_the_end_of_a_transaction() -> None:
    """
    Only a START forgets the attempt, so that a wait which an abort ends may be charged later on.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(1))
    writer.add(2 * MS, 1, "WAIT_OTHER_INEVITABLE").add(5 * MS, 1, "ABORT")
    writer.add(6 * MS, 1, "WAIT_FREE_SEGMENT").add(9 * MS, 1, "WAIT_DONE")
    writer.add(9 * MS, 1, "START").add(10 * MS, 1, "COMMIT")
    log = original_log(writer.content)

    assert {"BECOME_INEVITABLE": (0, 7 * MS, 1)} == charges(log)
    assert (MS, 2 * MS, 3 * MS) == (
        log.totals.committed_ns,
        log.totals.aborted_ns,
        log.totals.paused_ns,
    )


def test_s2_adds_a_transaction_again_at_a_second_end() -> None:
    """
    Its times are cleared by the next START alone.
    """
    writer = LogWriter().add(0, 1, "START").add(3 * MS, 1, "COMMIT").add(5 * MS, 1, "COMMIT")
    totals = original_log(writer.content).totals

    assert (6 * MS, 2) == (totals.committed_ns, totals.commits)


def test_s2_does_not_see_a_second_conflict_end_a_pause() -> None:
    """
    It looks away from the whole record, its time included.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "WRITE_READ", marker(1))
    writer.add(2 * MS, 1, "WAIT_SYNC_PAUSE").add(4 * MS, 1, "WRITE_READ", marker(1))
    totals = original_log(writer.add(7 * MS, 1, "ABORT").content).totals

    assert (2 * MS, 5 * MS) == (totals.aborted_ns, totals.paused_ns)


def test_s2_forgets_a_minor_collection_at_a_start() -> None:
    """
    Its end belongs to no collection of the new transaction.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "GC_MINOR_START").add(2 * MS, 1, "START")
    writer.add(6 * MS, 1, "GC_MINOR_DONE").add(7 * MS, 1, "COMMIT")

    reading = Reading(events_table="E16", is_original=True)
    (log,) = read_file(writer.content, reading).logs

    assert 0 == log.totals.minor_gc_ns


def test_cut_record_counts_for_the_original() -> None:
    """
    It takes a marker that is cut for a shorter one.
    """
    writer = LogWriter().add(0, 1, "START").add(MS, 1, "WRITE_READ", marker(3))
    writer.add(2 * MS, 1, "ABORT").add(2 * MS, 1, "START").add(3 * MS, 1, "WRITE_READ", marker(4))

    log = original_log(writer.content[:-3])

    assert (4, 2 * MS, 3 * MS) == (log.records, log.span_ns, log.totals.total_ns)
    assert {1} == {conflict.count for conflict in log.conflicts}
    assert 2 == len(log.conflicts)


def test_places_do_nothing_to_a_terminal() -> None:
    """
    A damaged log can have any character in them.
    """
    writer = LogWriter("L7").add(0, 1, "START")
    writer.add(3 * MS, 1, "WRITE_WRITE", "a \x1b[31m\0 b", "c", other=2).add(3 * MS, 1, "ABORT")
    file = read_file(writer.content, Reading(is_original=True))

    assert "\n  a [31m b\n  c\n" in original.render(report_of(file))
