"""Logs in files, in pipes, and what is none."""

import os
from pathlib import Path
from threading import Thread

import pytest

from gilscope.errors import NotAnStmLog
from gilscope.stm.log import Reading
from gilscope.stm.model import LogFile
from gilscope.stm.read import read_log
from stm.program import played_log
from stm.reading import file_of, original_log


def _read(path: Path, *, is_original: bool = False) -> LogFile:
    return read_log(str(path), Reading(is_original=is_original), lambda _done, _whole: None)


def test_file_is_read_as_a_whole(tmp_path: Path) -> None:
    """
    What is found is what is in it, and progress is told up to its end.
    """
    content = played_log("E16", 150_000).content
    path = tmp_path / "app.log"
    path.write_bytes(content)
    told: list[tuple[int, int | None]] = []

    file = read_log(str(path), Reading(), lambda done, whole: told.append((done, whole)))

    assert file_of(content, name=str(path)) == file
    assert (len(content), len(content)) == told[-1]
    assert 1 < len(told)


def test_original_is_read_twice_for_its_time_lines(tmp_path: Path) -> None:
    """
    Only then the end of the time is known.
    """
    content = played_log("E16", 3000).content
    path = tmp_path / "app.log"
    path.write_bytes(content)

    (log,) = _read(path, is_original=True).logs

    assert original_log(content).conflicts == log.conflicts
    assert {60} == {len(conflict.over_time.counts) for conflict in log.conflicts}


def test_pipe_is_read_once(tmp_path: Path) -> None:
    """
    It has no size, and cannot be read again.
    """
    content = played_log("E16", 200).content
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(content,))
    writer.start()
    file = _read(path, is_original=True)
    writer.join()

    assert len(content) == file.size


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: a process writes its log in blocks of 4096 bytes"),
        (b"#!/bin/sh\n", "does not begin as an STM log does"),
        (None, "No such file or directory"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    """
    The reason is a fact, and the exit code one of its own.
    """
    path = tmp_path / "app.log"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(NotAnStmLog, match=words) as failure:
        _read(path)

    assert 10 == failure.value.exit_code
    assert str(path) in str(failure.value)
