"""gilscope stm follow on files: what is written, and what the exit code says."""

import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from gilscope.cli import main
from gilscope.stm_log.follow.followed_file import FollowedFile
from gilscope.stm_log.follow.follower import Follower
from support.stm_log.program import played_log
from support.stm_log.reading import log_of

_FIRST, _SECOND = (played_log("E16", 3000, seed).content for seed in (1, 2))
_QUICKLY = ("--every", "0.1", "--count")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "app.log"
    path.write_bytes(_FIRST)
    return path


def _lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.usefixtures("log")
def test_summary_and_report(capsys: pytest.CaptureFixture[str]) -> None:
    """
    What is there first, then what has come, and in the end all of it as `stm report` has it.
    """
    assert 0 == main(["stm", "report", "app.log"])
    report = capsys.readouterr().out

    assert 0 == main(["stm", "follow", "app.log", *_QUICKLY, "2"])

    written = capsys.readouterr()
    summaries, _, last = written.out.partition("\n\n")
    assert report == last
    first, *_, second = summaries.splitlines()
    totals = log_of(_FIRST).totals
    assert f"  app.log: {totals.commits} committed, {totals.aborts} aborted (35 %)" == first[8:]
    assert "  nothing new in 1 log" == second[8:]
    assert "Following app.log: 1 file so far. Ctrl-C to end.\n" == written.err


@pytest.mark.usefixtures("log")
def test_json_is_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The last one is the report, the others have what has come and what there is.
    """
    assert 0 == main(["stm", "report", "app.log", "--format", "json"])
    report = json.loads(capsys.readouterr().out)

    words = ["stm", "follow", "app.log", *_QUICKLY, "2", "--format", "json", "--places", "2"]
    assert 0 == main(words)

    first, second, last = _lines(capsys.readouterr().out)
    assert {"version": 1, "report": report} == last
    totals = report["files"]["app.log"]["totals"]
    for line, part in ((first, "interval"), (first, "total"), (second, "total")):
        seen = line["logs"]["app.log"][part]
        assert (totals["commits"], totals["aborts"], len(_FIRST), 2) == (
            seen["commits"],
            seen["aborts"],
            seen["read_bytes"],
            len(seen["entries"]),
        )
    assert (0, []) == (
        second["logs"]["app.log"]["interval"]["commits"],
        second["logs"]["app.log"]["interval"]["entries"],
    )


def test_runs_of_a_process_are_told_apart(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Each has its report, the present one under the name of the file.
    """
    catch_up = Follower.catch_up

    def restart_and_catch_up(follower: Follower) -> None:
        for seed in (2, 3):
            catch_up(follower)
            log.write_bytes(played_log("E16", 3000, seed).content)
        catch_up(follower)

    monkeypatch.setattr(Follower, "catch_up", restart_and_catch_up)

    assert 0 == main(["stm", "follow", "app.log", *_QUICKLY, "0", "--format", "json"])

    (last,) = _lines(capsys.readouterr().out)
    assert ["app.log (run 1)", "app.log (run 2)", "app.log"] == list(last["report"]["files"])


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_with_the_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """
    At once, also in the middle of a long interval.
    """
    advance = Follower.advance

    def interrupt_and_advance(follower: Follower, timeout_s: float) -> bool:
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        monkeypatch.setattr(Follower, "advance", advance)
        return advance(follower, timeout_s)

    monkeypatch.setattr(Follower, "advance", interrupt_and_advance)

    assert 0 == main(["stm", "follow", "app.log", "--every", "3600"])

    assert capsys.readouterr().out.startswith("\napp.log\nLog of PyPy-STM C8 ")


@pytest.mark.parametrize("words", [(), ("--count", "0")])
def test_signal_ends_it_in_the_middle_of_a_large_log(
    log: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    """
    What has not been read by then is left out of the report, and that is said.
    """
    size = 1 << 40
    os.truncate(log, size)
    read = FollowedFile.read

    def interrupt_and_read(file: FollowedFile, piece: memoryview) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(FollowedFile, "read", read)
        return read(file, piece)

    monkeypatch.setattr(FollowedFile, "read", interrupt_and_read)

    assert 0 == main(["stm", "follow", "app.log", "--every", "3600", *words])

    written = capsys.readouterr()
    left = re.search(r"warning: (\d+) bytes of app.log were not read before the end\n", written.err)
    assert left is not None
    assert 0 < int(left[1]) < size
    assert written.out.startswith("\napp.log\nLog of PyPy-STM C8 ")


@pytest.mark.usefixtures("log")
def test_no_log_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """
    In the end: until then one may appear.
    """
    Path("b.log").write_bytes(b"#!/bin/sh\necho this is none\n")

    assert 10 == main(["stm", "follow", "b.log", "c*.log", *_QUICKLY, "1"])

    written = capsys.readouterr()
    assert "1x not a log: b.log is not read: it does not begin as an STM log does" in written.out
    assert "error: no STM log has appeared as b.log c*.log\n" in written.err


@pytest.mark.parametrize(
    "words", [["--every", "0"], ["--every", "x"], ["--every", "inf"], ["--count", "-1"]]
)
def test_mistakes_in_the_command_line_are_usage(words: list[str]) -> None:
    """
    Times and numbers that are none.
    """
    with pytest.raises(SystemExit, match="2"):
        main(["stm", "follow", "app.log", *words])
