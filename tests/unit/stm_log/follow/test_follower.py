"""What followers make of logs that grow, come, go and change their names, on real files."""

import os
from pathlib import Path
from random import Random

import pytest

from gilscope.stm_log.sums import LogSums
from support.stm_log.corpus import CORPUS, needs_corpus
from support.stm_log.followers import Follow, append, caught_up, only, sums_in
from support.stm_log.program import played_log
from support.stm_log.reading import file_of
from support.stm_log.writer import MS, LogWriter, marker

_FIRST, _SECOND, _THIRD = (played_log("E16", 3000, seed).content for seed in (1, 2, 3))


@pytest.mark.parametrize("table", ["C7", "C13", "E16", "X29"])
def test_log_that_grows_is_read_as_if_at_once(following: Follow, table: str) -> None:
    """
    In pieces of any size; at no moment a figure falls.
    """
    content = played_log(table, 30_000).content
    random = Random(7)  # noqa: S311 - has to be the same each time
    follower = following("app.log")
    at, before = 0, LogSums()
    while at < len(content):
        piece = content[at : at + random.choice([1, 40, 4096, 300_000])]
        at += len(piece)
        append("app.log", piece)
        now = caught_up(follower).sums
        assert now == now.at_least(before)
        before = now

    log = only(follower)
    assert (sums_in(content), len(content), len(content), 0) == (
        log.sums,
        log.size,
        log.read_bytes,
        log.lag_bytes,
    )


def test_log_that_appears_later_is_found(following: Follow) -> None:
    """
    Also in a folder that was not there.
    """
    follower = following("logs/*.log")
    follower.catch_up()
    assert () == follower.logs()
    Path("logs").mkdir()
    Path("logs/app.log").write_bytes(_FIRST)

    assert sums_in(_FIRST) == caught_up(follower).sums


def test_forks_are_added_to_their_process(following: Follow) -> None:
    """
    One name, whatever the numbers of the forks; their files need not be named.
    """
    Path("app.log").write_bytes(_FIRST)
    Path("app.log.fork7").write_bytes(_SECOND)
    follower = following("app.log")

    log = caught_up(follower)
    assert ("app.log", 2, sums_in(_FIRST, _SECOND)) == (log.name, log.files, log.sums)

    Path("app.log.fork8").write_bytes(_THIRD)
    Path("app.log.forked").write_bytes(_THIRD)
    assert sums_in(_FIRST, _SECOND, _THIRD) == caught_up(follower).sums


def test_restarted_process_adds_to_what_was_counted(following: Follow) -> None:
    """
    It empties its log and begins anew, with less than before or with more.
    """
    short = played_log("E16", 100, seed=5).content
    follower = following("app.log")
    for content in (_FIRST, short, _SECOND):
        Path("app.log").write_bytes(content)
        log = caught_up(follower)

    assert (sums_in(_FIRST, short, _SECOND), 1) == (log.sums, log.files)
    assert len(_FIRST) + len(short) + len(_SECOND) == log.read_bytes


def test_emptied_log_counts_on_before_anything_is_written(following: Follow) -> None:
    """
    Nothing falls, and nothing lags.
    """
    Path("app.log").write_bytes(_FIRST)
    follower = following("app.log")
    before = caught_up(follower)
    Path("app.log").write_bytes(b"")

    log = caught_up(follower)
    assert (before.sums, 0, 0) == (log.sums, log.size, log.lag_bytes)


def test_copied_and_truncated_log_goes_on(following: Follow) -> None:
    """
    The writer goes on at its old place, in front of which there is a hole: nothing is lost.
    """
    follower = following("app.log")
    with Path("app.log").open("wb", buffering=0) as log:
        log.write(_FIRST[:30_000])
        follower.catch_up()
        os.truncate("app.log", 0)
        follower.catch_up()
        log.write(_FIRST[30_000:])

    seen = caught_up(follower)
    assert (sums_in(_FIRST), len(_FIRST)) == (seen.sums, seen.read_bytes)


def test_copied_and_truncated_log_of_one_that_appends_goes_on(following: Follow) -> None:
    """
    Such a writer begins at 0 again, in the middle of a record as it may be.
    """
    follower = following("app.log")
    with Path("app.log").open("ab", buffering=0) as log:
        log.write(_FIRST[:30_001])
        follower.catch_up()
        os.truncate("app.log", 0)
        log.write(_FIRST[30_001:])

    assert sums_in(_FIRST) == caught_up(follower).sums


def test_removed_log_keeps_its_counts(following: Follow) -> None:
    """
    What was written before it was removed is read to its end.
    """
    Path("app.log").write_bytes(_FIRST)
    follower = following("app.log")
    caught_up(follower)
    append("app.log", _SECOND[16:])
    Path("app.log").unlink()

    log = caught_up(follower)
    assert (0, 0, 0) == (log.files, log.size, log.lag_bytes)
    assert sums_in(_FIRST + _SECOND[16:]) == log.sums


def test_log_that_is_renamed_is_finished_and_the_new_one_begun(following: Follow) -> None:
    """
    The old one may still grow; nothing is counted twice, under whichever name.
    """
    follower = following("app.log*")
    Path("app.log").write_bytes(_FIRST[:30_000])
    follower.catch_up()
    Path("app.log").rename("app.log.1")
    append("app.log.1", _FIRST[30_000:])
    Path("app.log").write_bytes(_SECOND)

    log = caught_up(follower)
    assert ("app.log", 2, sums_in(_FIRST, _SECOND)) == (log.name, log.files, log.sums)


def test_log_that_is_renamed_out_of_sight_is_read_on(following: Follow) -> None:
    """
    Its writer has it open, as the follower has.
    """
    follower = following("app.log")
    Path("app.log").write_bytes(_FIRST[:30_000])
    follower.catch_up()
    Path("app.log").rename("old")
    follower.catch_up()
    append("old", _FIRST[30_000:])
    Path("app.log").write_bytes(_SECOND)

    assert sums_in(_FIRST, _SECOND) == caught_up(follower).sums


def test_header_in_parts_is_waited_for(following: Follow, said: list[str]) -> None:
    """
    Of the first few bytes nothing can be said.
    """
    follower = following("app.log")
    for byte in _FIRST[:20]:
        append("app.log", bytes([byte]))
        follower.catch_up()
    append("app.log", _FIRST[20:])

    assert sums_in(_FIRST) == caught_up(follower).sums
    assert [] == said


def test_record_that_a_killed_process_has_cut_is_counted(following: Follow) -> None:
    """
    When its log has ended.
    """
    Path("app.log").write_bytes(_FIRST[:-3])
    follower = following("app.log")
    assert {} == caught_up(follower).sums.errors
    Path("app.log").unlink()

    assert {"cut_record": 1} == caught_up(follower).sums.errors


def test_logs_that_have_ended_are_kept_for_a_report(following: Follow) -> None:
    """
    Those of earlier runs first, and each as a whole.
    """
    follower = following("app.log", keeps_ended=True)
    for content in (_FIRST, _SECOND):
        Path("app.log").write_bytes(content)
        follower.catch_up()

    files = follower.finish()

    assert [file_of(_FIRST), file_of(_SECOND)] == list(files)


def test_table_that_turns_out_to_be_another_one_makes_nothing_fall(following: Follow) -> None:
    """
    The collections of a log of D14 look like waits of E16 before there is any position.
    """
    follower = following("app.log")
    writer = LogWriter("L8", "D14")
    before = LogSums()
    for number in range(8):
        begin_ns = number * MS
        writer.add(begin_ns, 1, "START")
        if number >= 4:
            writer.add(begin_ns + 10, 1, "INEVITABLE", marker(3))
        writer.add(begin_ns + 20, 1, "GC_MINOR_START").add(begin_ns + 30, 1, "GC_MINOR_DONE")
        writer.add(begin_ns + 500, 1, "COMMIT")
        Path("app.log").write_bytes(writer.content)
        now = caught_up(follower).sums
        assert now == now.at_least(before)
        before = now

    assert ({}, 80) == (sums_in(writer.content).waits_ns, sums_in(writer.content).minor_gc_ns)
    assert (40, 80) == (sum(before.waits_ns.values()), before.minor_gc_ns)


@needs_corpus
@pytest.mark.parametrize(
    "name", ["c7-fork.log", "c8-killed.log", "pypystm-fork.log", "pypystm-tornado-primes-4t.log"]
)
def test_real_log_is_read_as_a_report_reads_it(following: Follow, name: str) -> None:
    """
    With its forks, in the blocks in which it was written.
    """
    parts = sorted(CORPUS.glob(f"{name}*"))
    follower = following("*.log")
    for part in parts:
        content = part.read_bytes()
        for at in range(0, len(content), 4096):
            append(part.name, content[at : at + 4096])
            if at % (1 << 16) == 0:
                follower.catch_up()
    follower.catch_up()
    follower.finish()

    expected = sums_in(*(part.read_bytes() for part in parts))
    found = only(follower).sums
    assert (expected.losses, expected.records) == (found.losses, found.records)
    assert (expected.committed_runs, expected.aborted_runs) == (
        found.committed_runs,
        found.aborted_runs,
    )
