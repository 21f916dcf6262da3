"""Which files followers read, when they do, and what they cannot read."""

import os
from pathlib import Path

import pytest

from gilscope.stm_log.follow import follower as follower_module
from gilscope.stm_log.follow import log_groups, watcher
from support.stm_log.followers import Follow, append, caught_up, only, sums_in
from support.stm_log.program import played_log

_FIRST, _SECOND = (played_log("E16", 3000, seed).content for seed in (1, 2))


def test_file_that_two_patterns_mean_is_read_once(following: Follow) -> None:
    """
    Also by another name.
    """
    Path("app.log").write_bytes(_FIRST)
    Path("link.log").symlink_to("app.log")
    Path("hard.log").hardlink_to("app.log")
    follower = following("app.*", "*.log", str(Path("app.log").resolve()))

    assert sums_in(_FIRST) == caught_up(follower).sums


def test_name_with_a_bracket_is_a_name(following: Follow) -> None:
    """
    Where there is such a file.
    """
    Path("app[1].log").write_bytes(_FIRST)

    assert "app[1].log" == caught_up(following("app[1].log")).name


def test_name_that_is_no_text_becomes_one(following: Follow, said: list[str]) -> None:
    """
    Names of files are bytes, and what is shown of them is one line.
    """
    Path(os.fsdecode(b"a\xff\n\x1b[1m.log")).write_bytes(_FIRST)
    Path(os.fsdecode(b"b\xff.log")).write_bytes(b"nothing of the kind\n")
    follower = following("*.log")
    follower.catch_up()

    assert ["a [1m.log", "b.log"] == [log.name for log in follower.logs()]
    assert ["b.log is not read: it does not begin as an STM log does"] == said


def test_what_cannot_be_read_is_said_once_and_counted(following: Follow, said: list[str]) -> None:
    """
    It ends nothing, and the others are read.
    """
    Path("a.log").write_bytes(_FIRST)
    Path("b.log").write_bytes(b"#!/bin/sh\nand more than a header\n")
    Path("c.log").symlink_to("c.log")
    Path("d.log").mkdir()
    os.mkfifo("e.log")
    follower = following("*.log")
    for _ in range(3):
        follower.catch_up()

    logs = {log.name: log for log in follower.logs()}
    assert {
        "a.log": {},
        "b.log": {"not_a_log": 1},
        "c.log": {"unreadable": 1},
        "d.log": {"not_a_log": 1},
        "e.log": {"not_a_log": 1},
    } == {name: log.sums.errors for name, log in logs.items()}
    assert [
        "b.log is not read: it does not begin as an STM log does",
        "c.log is not read: Too many levels of symbolic links",
        "d.log is not read: it is no regular file",
        "e.log is not read: it is no regular file",
    ] == sorted(said)
    assert "b.log is not read: it does not begin as an STM log does" == logs["b.log"].problem
    assert (0, 0) == (logs["b.log"].lag_bytes, logs["b.log"].read_bytes)


def test_what_was_no_log_may_become_one(following: Follow) -> None:
    """
    The file is looked at again when it has changed.
    """
    Path("app.log").write_bytes(b"nothing of the kind\n")
    follower = following("app.log")
    caught_up(follower)
    Path("app.log").write_bytes(_FIRST)

    log = caught_up(follower)
    assert ({"not_a_log": 1}, 1) == (log.sums.errors, log.files)
    assert sums_in(_FIRST).losses == log.sums.losses


def test_files_are_bounded(
    following: Follow, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    """
    Those that have been quiet make room, and keep what they have counted.
    """
    monkeypatch.setattr(follower_module, "MOST_FILES", 2)
    follower = following("app.log")
    for pid in (1, 2, 3):
        Path(f"app.log.fork{pid}").write_bytes(_FIRST)
        follower.catch_up()

    assert sums_in(_FIRST, _FIRST).records == only(follower).sums.records
    assert ["app.log.fork3 is not read: 2 others are followed"] == said

    monkeypatch.setattr(follower_module, "_LINGER_NS", 0)
    log = caught_up(follower)
    assert (3 * sums_in(_FIRST).records, 2) == (log.sums.records, log.files)

    # No room is left for one that comes back.
    append("app.log.fork1", _SECOND[16:])
    follower.catch_up()
    assert {"crowded": 2} == only(follower).sums.errors
    assert "app.log.fork1 is not read: it was given up, and has grown since" == said[-1]


@pytest.mark.parametrize(
    ("name", "read"),
    [("b.log", ["b.log", "c.log", "d.log"]), ("d.log", ["b.log", "c.log"])],
    ids=["given up", "new"],
)
def test_file_that_vanishes_when_it_has_been_found_ends_nothing(
    following: Follow, monkeypatch: pytest.MonkeyPatch, name: str, read: list[str]
) -> None:
    """
    It is no error, be it new or given up: what was read of it stays, and the others are read.
    """
    monkeypatch.setattr(follower_module, "MOST_FILES", 1)
    monkeypatch.setattr(follower_module, "_LINGER_NS", 0)
    said = []

    def vanish(words: str) -> None:
        said.append(words)
        # All files have been found by then, and those behind the first are still to be taken up.
        Path(name).unlink()

    follower = following("*.log", say=vanish)
    for quiet in ("b.log", "c.log"):
        Path(quiet).write_bytes(_FIRST)
        follower.catch_up()
    Path("d.log").write_bytes(_FIRST)
    Path("a.log").mkdir()
    monkeypatch.setattr(follower_module, "MOST_FILES", 3)

    follower.catch_up()

    assert ["a.log is not read: it is no regular file"] == said
    assert dict.fromkeys(read, sums_in(_FIRST).records) == {
        log.name: log.sums.records for log in follower.logs() if log.sums.records
    }


def test_names_are_bounded(following: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What comes later is added up as other.
    """
    monkeypatch.setattr(log_groups, "MOST_LOGS", 2)
    follower = following("*.log")
    for name in "abcd":
        Path(f"{name}.log").write_bytes(_FIRST)
    follower.catch_up()

    assert [("a.log", 1), ("b.log", 1), ("other", 2)] == [
        (log.name, log.files) for log in follower.logs()
    ]


def test_lag_is_what_is_written_and_not_read(following: Follow) -> None:
    """
    It is measured when it is asked for.
    """
    Path("app.log").write_bytes(_FIRST)
    follower = following("app.log")
    caught_up(follower)
    append("app.log", _SECOND[16:5000])

    assert (5000 - 16, len(_FIRST) + 5000 - 16) == (
        only(follower).lag_bytes,
        only(follower).size,
    )


@pytest.mark.parametrize("step", range(4))
def test_change_is_noticed(following: Follow, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """
    A log that appears, grows, is emptied or is removed ends a wait.
    """
    monkeypatch.setattr(watcher, "_SWEEP_S", 3600)
    acts = (
        lambda: Path("app.log").write_bytes(_FIRST),
        lambda: append("app.log", _SECOND[16:]),
        lambda: os.truncate("app.log", 0),
        lambda: Path("app.log").unlink(),
    )
    follower = following("app.log")
    for act in acts[:step]:
        act()
    while follower.advance(0):
        pass

    acts[step]()

    assert follower.advance(20)


def test_busy_log_does_not_starve_others(following: Follow) -> None:
    """
    In one turn each has its share, and what is left is read in the next ones.
    """
    large = played_log("E16", 400_000).content
    assert (1 << 22) < len(large)
    Path("a.log").write_bytes(large)
    Path("b.log").write_bytes(_FIRST)
    follower = following("*.log")

    follower.advance(0)

    assert [1 << 22, len(_FIRST)] == [log.read_bytes for log in follower.logs()]
    follower.advance(0)
    follower.advance(0)
    assert [0, 0] == [log.lag_bytes for log in follower.logs()]


def test_long_turn_ends_and_the_next_goes_on(
    following: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With those that have not had theirs, so that whoever reads can do something else in between.
    """
    monkeypatch.setattr(follower_module, "_LONGEST_TURN_S", -1.0)
    for name in "abc":
        Path(f"{name}.log").write_bytes(_FIRST)
    follower = following("*.log")
    follower.advance(0)
    assert [0, 0, 0] == [log.read_bytes for log in follower.logs()]
    monkeypatch.setattr(follower_module, "_LONGEST_TURN_S", 1.0)
    follower.advance(0)

    assert [len(_FIRST)] * 3 == [log.read_bytes for log in follower.logs()]
