"""What is found in a log: its layout, its events, its records, and what is none of them."""

from dataclasses import replace
from random import Random

import pytest

from gilscope.model.stm_log import Gap, LogFile, StmLog
from gilscope.stm_log.reader import TABLES, LogReader, Reading
from support.stm_log.program import played_log
from support.stm_log.reading import file_of
from support.stm_log.writer import EVENTS, HEADS, MAGIC, MS, LogWriter, S, marker


def _file(content: bytes, reading: Reading | None = None, piece: int = 1 << 20) -> LogFile:
    reader = LogReader("app.log", reading)
    for at in range(0, len(content), piece):
        reader.feed(content[at : at + piece])
    reader.finish()
    return reader.snapshot()


def _log(content: bytes, reading: Reading | None = None) -> StmLog:
    (log,) = _file(content, reading).logs
    return log


@pytest.mark.parametrize("table", EVENTS)
def test_events_are_found_out(table: str) -> None:
    """
    The table that the records fit to is chosen, and every number has the name that it gives.
    """
    log = _log(played_log(table, 1000).content)

    assert table == log.events_table
    assert ("C7" if table == "C7" else "C8") == ("C8" if log.layout == "L8" else "C7")
    assert log.counts["STM_TRANSACTION_START"] == (
        log.counts["STM_TRANSACTION_COMMIT"] + log.counts["STM_TRANSACTION_ABORT"]
    )
    assert log.counts["STM_GC_MINOR_START"] == log.counts["STM_GC_MINOR_DONE"]


def test_tables_are_those_of_the_facts() -> None:
    """
    Each table of events can be asked for by its name.
    """
    assert tuple(EVENTS) == TABLES


@pytest.mark.parametrize("table", [name for name in EVENTS if name != "C7"])
def test_events_can_be_told(table: str) -> None:
    """
    What is asked for is used, whatever fits better.
    """
    log = _log(played_log("E16", 100).content, Reading(events_table=table))

    assert table == log.events_table
    assert (
        log.counts["STM_TRANSACTION_START"]
        == _log(played_log("E16", 100).content).counts["STM_TRANSACTION_START"]
    )


def test_undecidable_events_are_those_of_the_final_version() -> None:
    """
    Records that every version could have written are taken for the latest one's.
    """
    writer = LogWriter().add(0, 1, "START").add(1, 1, "COMMIT")

    assert "E16" == _log(writer.content).events_table


@pytest.mark.parametrize("layout", ["L7", "L7a"])
def test_layouts_of_c7_are_told_apart(layout: str) -> None:
    """
    Records with and without the number of the other thread have the same header.
    """
    log = _log(played_log("C7", 300, layout=layout).content)

    assert layout == log.layout
    assert 300 <= log.records
    assert log.with_marker.keys() <= {
        "STM_CONTENTION_WRITE_WRITE",
        "STM_CONTENTION_WRITE_READ",
        "STM_CONTENTION_INEVITABLE",
    }


@pytest.mark.parametrize("layout", HEADS)
def test_short_logs_have_a_layout(layout: str) -> None:
    """
    One record is enough, and none is no failure.
    """
    writer = LogWriter(layout)
    empty = _log(writer.content)
    one = _log(writer.add(0, 1, "START").content)

    assert 0 == empty.records
    assert (layout, 1, 0) == (one.layout, one.records, one.span_ns)


def test_semantics_belong_to_the_table() -> None:
    """
    Logs are charged as the tools of their time did, unless something else is asked for.
    """
    found = {table: _log(played_log(table, 300).content).semantics for table in EVENTS}
    asked = _log(played_log("C7", 300).content, Reading(semantics="S0")).semantics

    late = dict.fromkeys(["C13", "D14", "E16", "X28", "X29"], "S2")
    assert {"C7": "S1", "A11": "S1", "B12": "S1"} | late == found
    assert "S0" == asked


@pytest.mark.parametrize("table", ["C7", "E16", "X29"])
def test_pieces_make_no_difference(table: str) -> None:
    """
    Whatever the pieces are in which a log comes, the same is found.
    """
    content = played_log(table, 400).content
    content += b"\0" * 50 + content[20:] + bytes(range(90))
    whole = _file(content)

    assert 2 == len(whole.logs)
    for piece in (1, 7, 13, 64, 1000, 4096):
        assert whole == _file(content, piece=piece)


@pytest.mark.parametrize("layout", HEADS)
def test_cut_record_is_no_record(layout: str) -> None:
    """
    Wherever the last record is cut, the ones before it are all that there is.
    """
    writer = LogWriter(layout)
    for number in range(20):
        writer.add(number, 1, "START").add(number, 1, "COMMIT")
    whole = writer.size
    writer.add(21, 1, "WRITE_READ", marker(1))

    for end in range(whole, writer.size):
        file = _file(writer.content[:end])
        (log,) = file.logs
        assert (40, end - whole) == (log.records, file.cut_tail_bytes)
        assert () == log.conflicts


@pytest.mark.parametrize("layout", ["L7a", "L7", "L8"])
def test_nul_bytes_are_counted_in_whatever_pieces_they_come(layout: str) -> None:
    """
    Up to the first byte of the record behind them.
    """
    table = "E16" if layout == "L8" else "C7"
    first, second = (played_log(table, 600, seed, layout).content for seed in (1, 2))
    for hole in range(1, 40):
        content = first + b"\0" * hole + second[16:]
        reader = LogReader("app.log")
        behind, at = len(first) + hole, 0
        for end in (len(first) - 3, behind - hole // 2, behind + 1, len(content)):
            reader.feed(content[at:end])
            at = end
        reader.finish()
        file = reader.snapshot()

        assert Gap(len(first), hole, hole) == file.logs[1].gap
        assert file_of(content) == file


def test_threads_are_counted() -> None:
    """
    Each number counts once, also when thousands come and go.
    """
    writer = LogWriter()
    for thread in range(1, 20_001):
        writer.add(thread, thread, "START").add(thread, thread, "COMMIT")
    for thread in range(1, 20_001):
        writer.add(20_000 + thread, thread, "START").add(20_000 + thread, thread, "COMMIT")
    log = _log(writer.content)

    assert 20_000 == log.threads
    assert (40_000, 0) == (log.totals.commits, log.totals.unfinished_ns)


def test_backward_clock_is_counted() -> None:
    """
    Threads of C7 can write their records in another order than they took the time.
    """
    writer = LogWriter("L7")
    for number in range(20):
        writer.add(number * MS, 1, "START").add(number * MS - 1000, 2, "START")
    log = _log(writer.content)

    assert (20, 19 * MS + 1000) == (log.backward_timestamps, log.span_ns)
    assert 0 <= log.totals.committed_ns


def test_two_writers_are_two_logs() -> None:
    """
    NUL bytes and half a record end a log. What follows has its own threads, times and gap.
    """
    first = played_log("E16", 400, seed=1).content
    second = played_log("E16", 500, seed=2, threads=2).content
    body = second[len(MAGIC["L8"]) :]
    file = _file(first + b"\0" * 1000 + b" (#7)" + body)

    alone, after = _file(first).logs[0], _file(second).logs[0]
    assert 2 == len(file.logs)
    assert alone == file.logs[0]
    assert Gap(len(first), 1000, 1005) == file.logs[1].gap
    assert after.records == file.logs[1].records
    assert 2 == file.logs[1].threads


def test_half_a_record_behind_nul_bytes_is_no_record() -> None:
    """
    With the NUL bytes in front of it it looks like one from the start of the machine.
    """
    first = played_log("E16", 400, seed=1).content
    second = LogWriter().add(7, 1, "REATTACH").raw(played_log("E16", 400, seed=2).content[16:])
    cut = second.content[16 + 7 :]
    file = _file(first + b"\0" * 1000 + cut)

    assert b"\0\1\0\0\0\4\0" == cut[:7]
    gap = file.logs[1].gap
    assert gap is not None
    assert (1007, len(first) + 1007) == (gap.size, file.logs[1].offset)


def test_another_clock_is_another_log() -> None:
    """
    Records of another process may follow without a byte between them, but not in time.
    """
    first = played_log("E16", 5000, seed=1).content
    second = played_log("E16", 5000, seed=2).content[len(MAGIC["L8"]) :]
    file = _file(first + second)

    assert [_file(first).logs[0].records, _file(MAGIC["L8"] + second).logs[0].records] == [
        log.records for log in file.logs
    ]
    assert Gap(len(first), 0, 0) == file.logs[1].gap


def test_idle_program_is_one_log() -> None:
    """
    Hours without a record are no gap, however often they come.
    """
    writer = LogWriter()
    for number in range(40):
        writer.add(number * 3 * 3600 * S, 1, "START").add(number * 3 * 3600 * S + 1, 1, "COMMIT")

    assert 80 == _log(writer.content).records


def test_garbage_behind_a_log_is_told() -> None:
    """
    What is no record is skipped, and nothing of it is counted.
    """
    sound = played_log("E16", 300).content
    file = _file(sound + b"\xff" * 3000)
    (log,) = file.logs

    assert _log(sound) == log
    assert Gap(len(sound), 0, 3000) == file.trailing_gap


def test_garbage_is_survived() -> None:
    """
    A thousand logs with random damage are read to their ends.
    """
    random = Random(7)  # noqa: S311 - has to be the same each time
    sound = played_log("E16", 120).content
    for _ in range(1000):
        content = bytearray(sound)
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(16, len(content))
            content[at : at + random.randrange(9)] = random.randbytes(random.randrange(9))
        file = _file(bytes(content), Reading(is_original=random.random() < 0.5))
        assert len(content) == file.size


def test_unknown_events_are_counted_and_of_no_effect() -> None:
    """
    A number that no table has is neither a failure nor garbage.
    """
    writer = LogWriter()
    for number in range(100):
        writer.add(number * MS, 1, "START").add(number * MS + 10, 1, 40)
        writer.add(number * MS + 20, 1, "COMMIT")
    log = _log(writer.content)

    assert 100 == log.counts["STM_UNKNOWN_EVENT_40"]
    assert 100 * 20 == log.totals.committed_ns


def test_markers_need_not_be_text() -> None:
    """
    Bytes that are not UTF-8, and numbers of programs that are not PyPy, are kept as they are.
    """
    writer = LogWriter()
    for number in range(20):
        for first in (b'File "\xff.py", line 3, in f', (57).to_bytes(8, "little"), b""):
            writer.add(number, 1, "START").add(number, 1, "WRITE_READ", first)
            writer.add(number, 1, "ABORT")
    log = _log(writer.content)

    assert {('File "\\xff.py", line 3, in f',), ("9\0\0\0\0\0\0\0",), ()} == {
        conflict.markers for conflict in log.conflicts
    }
    assert [20] * 3 == [conflict.count for conflict in log.conflicts]


def test_log_can_be_asked_while_it_grows() -> None:
    """
    What has been read so far is told at any time, before and after its events are found out.
    """
    writer = played_log("E16", 30_000)
    reader = LogReader("app.log")
    seen = []
    for at in range(0, writer.size, 50_000):
        reader.feed(writer.content[at : at + 50_000])
        seen.append(reader.snapshot().logs[0].totals.commits)
    reader.finish()

    assert sorted(set(seen)) == seen
    assert reader.snapshot().logs[0].totals == _log(writer.content).totals


def test_places_beyond_the_limit_are_added_up_by_kind() -> None:
    """
    No log can take any amount of memory: what there is no room for goes to one entry.
    """
    writer = LogWriter()
    for number in range(5000):
        writer.add(number, 1, "START").add(number, 1, "WRITE_READ", marker(number))
        writer.add(number, 1, "ABORT")
    log = _log(writer.content)
    (rest,) = [conflict for conflict in log.conflicts if conflict.is_rest]

    assert 4096 + 1 == len(log.conflicts)
    assert 5000 - 4096 == rest.count


@pytest.mark.parametrize("content", [b"#!/usr/bin/python3\n", b"\0" * 40, b"STMGC-C9-PROF01\n"])
def test_other_files_are_refused(content: bytes) -> None:
    """
    A log begins with one of two lines.
    """
    with pytest.raises(ValueError, match="does not begin as an STM log does"):
        _file(content)


@pytest.mark.parametrize("reading", [Reading(events_table="Z99"), Reading(semantics="S3")])
def test_unknown_options_are_refused(reading: Reading) -> None:
    """
    Names that stand for nothing are no names.
    """
    with pytest.raises(ValueError, match=r"there (is|are) no "):
        LogReader("app.log", reading)


def test_nothing_follows_the_end() -> None:
    """
    A log that was ended takes no more bytes.
    """
    reader = LogReader("app.log")
    reader.finish()

    with pytest.raises(ValueError, match="has ended"):
        reader.feed(b"")


def test_sums_are_the_snapshot_without_counts_over_time() -> None:
    """
    Before the table is known and after, and of each part of a file.
    """
    content = played_log("E16", 30_000).content + bytes(40) + played_log("E16", 300).content[16:]
    reader = LogReader("app.log")
    for at in range(0, len(content), 100_000):
        reader.feed(content[at : at + 100_000])
        whole, sums = reader.snapshot(), reader.sums()

        assert [_without_counts(log) for log in whole.logs] == list(sums.logs)
        assert replace(whole, logs=()) == replace(sums, logs=())


def _without_counts(log: StmLog) -> StmLog:
    return replace(
        log,
        conflicts=tuple(
            replace(each, over_time=replace(each.over_time, counts=())) for each in log.conflicts
        ),
        commits_over_time=replace(log.commits_over_time, counts=()),
        aborts_over_time=replace(log.aborts_over_time, counts=()),
    )
