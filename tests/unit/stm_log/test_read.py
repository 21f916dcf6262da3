"""Logs in files, in pipes, and what is none."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from gilscope.errors import NotAnStmLog
from gilscope.model.stm_log import Gap, LogFile
from gilscope.stm_log.read import read_log
from gilscope.stm_log.reader import Reading
from support.stm_log.program import played_log
from support.stm_log.reading import file_of, original_log


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


def test_pipe_without_a_writer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is not waited for without end.
    """
    monkeypatch.setattr("gilscope.stm_log.read._WRITER_PATIENCE_S", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with pytest.raises(NotAnStmLog) as failure:
        _read(path)

    words = "it is a pipe, and for 0.05 s nothing has opened it to write"
    assert f"cannot read {path}: {words}" == str(failure.value)


def test_writer_of_a_pipe_may_take_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Once there is one it is waited for: it may have to unpack the log first.
    """
    monkeypatch.setattr("gilscope.stm_log.read._WRITER_PATIENCE_S", 0.0)
    content = played_log("E16", 200).content
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    waits = Event()

    real_poll = select.poll

    def poll() -> select.poll:
        waits.set()
        return real_poll()

    monkeypatch.setattr(select, "poll", poll)

    def write() -> None:
        waits.wait()
        os.write(writing, content)
        os.close(writing)

    writer = Thread(target=write)
    writer.start()
    file = _read(path)
    writer.join()
    os.close(reading)

    assert len(content) == file.size


def test_link_to_a_log_is_followed(tmp_path: Path) -> None:
    """
    A user may call a log what they like.
    """
    content = played_log("E16", 200).content
    (tmp_path / "app.log").write_bytes(content)
    (tmp_path / "link").symlink_to("app.log")

    assert len(content) == _read(tmp_path / "link").size


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/dev/zero", "cannot read /dev/zero: it is a device"),
        ("/proc/self/mem", "cannot read /proc/self/mem: Input/output error"),
        ("folder", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("socket", "it is a socket"),
    ],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    """
    It is said what it is.
    """
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(NotAnStmLog, match=words):
            _read(Path(name))


def test_what_is_no_log_is_not_read_to_its_end(tmp_path: Path) -> None:
    """
    A hole of any size costs nothing to make.
    """
    path = tmp_path / "app.log"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    told: list[int] = []

    with pytest.raises(NotAnStmLog, match="does not begin as an STM log does"):
        read_log(str(path), Reading(), lambda done, _whole: told.append(done))

    assert [1 << 18] == told


def test_hole_in_a_log_is_a_gap(tmp_path: Path) -> None:
    """
    However large it is, the records behind it are found.
    """
    first, second = (played_log("E16", 300, seed).content for seed in (1, 2))
    hole = 300 << 20
    path = tmp_path / "app.log"
    with path.open("wb") as file:
        file.write(first)
        file.seek(hole, os.SEEK_CUR)
        file.write(second[16:])
    logs = _read(path).logs

    assert Gap(len(first), hole, hole) == logs[1].gap
    assert [300, 300] == [log.records // 10 * 10 for log in logs]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_reading(tmp_path: Path, end: signal.Signals) -> None:
    """
    At any time, by that signal, and the report that was there stays.
    """
    path, report = tmp_path / "app.log", tmp_path / "report"
    report.write_text("an older one")
    path.write_bytes(played_log("E16", 300).content)
    os.truncate(path, 1 << 40)
    command = [sys.executable, "-m", "gilscope", "stm", "report", str(path), "-o", str(report)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not _has_read(process.pid, path):
                assert process.poll() is None
            process.send_signal(end)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()

    assert (-end, "") == (process.returncode, said)
    assert "an older one" == report.read_text()


def _has_read(pid: int, path: Path) -> bool:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # Others come and go, and the first descriptor of the log only names it.
        with contextlib.suppress(FileNotFoundError):
            if os.path.realpath(descriptor) == str(path):
                place = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text().split()[1]
                return int(place) > 0
    return False


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
