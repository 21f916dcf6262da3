"""gilscope stm on files: what is read, what is written, and what the exit code says."""

import io
import json
import os
import resource
import signal
import sys
from pathlib import Path
from threading import Thread

import pytest

from gilscope.cli import main
from support.stm_log.golden import GOLDEN_ENTRIES
from support.stm_log.program import played_log
from support.stm_log.writer import LogWriter, marker


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "app.log"
    path.write_bytes(played_log("E16", 3000).content)
    return path


def _keys(path: Path) -> list[str]:
    return list(json.loads(path.read_text())["files"])


@pytest.mark.usefixtures("log")
def test_report_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Text, and nothing else anywhere.
    """
    assert 0 == main(["stm", "report", "app.log"])

    written = capsys.readouterr()
    assert written.out.startswith("app.log\nLog of PyPy-STM C8 (layout L8, events E16), ")
    assert "" == written.err


@pytest.mark.usefixtures("log")
def test_report_can_go_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """
    In the form that is asked for, or that the name of the file says.
    """
    assert 0 == main(["stm", "report", "app.log", "--format", "json", "-o", "app.json"])
    assert 0 == main(["stm", "report", "app.log", "-o", "app.html"])

    assert ["app.log"] == _keys(Path("app.json"))
    assert Path("app.html").read_text().startswith("<!doctype html>")
    assert "" == capsys.readouterr().out


def test_forks_are_merged_unless_told_otherwise(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The process and its fork make one report; with none, two.
    """
    Path("app.log.fork7").write_bytes(log.read_bytes())

    assert 0 == main(["stm", "report", "app.log", "app.log.fork7"])
    assert capsys.readouterr().out.startswith("app.log and 1 fork\n")
    assert 0 == main(["stm", "report", "app.log", "app.log.fork7", "--merge", "none"])
    assert "\n\napp.log.fork7\n" in capsys.readouterr().out


@pytest.mark.usefixtures("log")
def test_other_files_do_not_cost_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """
    What can be read is reported, and the exit code says that not all could.
    """
    Path("empty.log").write_bytes(b"")

    assert 10 == main(["stm", "report", "empty.log", "app.log", "gone.log"])

    written = capsys.readouterr()
    assert written.out.startswith("app.log\n")
    assert [
        "error: empty.log is empty: a process writes its log in blocks of 4096 bytes",
        "error: cannot read gone.log: No such file or directory",
    ] == written.err.splitlines()


def test_no_log_is_an_error_with_a_remedy(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is said how PyPy-STM writes one.
    """
    log.write_bytes(b"#!/bin/sh\n")

    assert 10 == main(["stm", "report", "app.log"])

    first, second = capsys.readouterr().err.splitlines()
    assert "error: app.log does not begin as an STM log does" == first
    assert "PYPYSTM=app.log" in second


def test_original_form_and_figures(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    --compat with S0 prints the entries of the two texts.
    """
    log.write_bytes(GOLDEN_ENTRIES[0].log())

    assert 0 == main(["stm", "report", "app.log", "--compat", "--semantics", "S0"])

    assert f"\n\n{GOLDEN_ENTRIES[0].text}\n\n" in capsys.readouterr().out


def test_maxcount_and_sources(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    So many conflicts as are asked for, with lines from the folder that is named.
    """
    log.write_bytes(played_log("E16", 3000).content)
    sources = log.parent / "sources"
    sources.mkdir()
    (sources / "app.py").write_text("".join(f"line {number}\n" for number in range(1, 20)))

    words = ["stm", "report", "app.log", "-n", "3", "--sources", "sources", "--events", "E16"]
    assert 0 == main(words)

    lines = capsys.readouterr().out.splitlines()
    assert 3 == sum("lost in aborts" in line for line in lines)
    assert 3 == sum(line.startswith("    line ") for line in lines)


def test_standard_input_is_a_log(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A minus stands for it, once.
    """
    with log.open("rb") as source:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
        assert 0 == main(["stm", "report", "-"])
        assert capsys.readouterr().out.startswith("-\nLog of PyPy-STM C8")
        assert 2 == main(["stm", "report", "-", "-"])


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_on_a_terminal_and_wiped_away(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Of what takes long; here everything does.
    """
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("gilscope.commands.progress._QUIET_S", 0)

    assert 0 == main(["stm", "report", "app.log", "-o", "report"])

    told = terminal.getvalue()
    assert told.startswith("\r\033[KReading app.log: 100 %, ")
    assert told.endswith(" MB/s\r\033[K")
    assert log.exists()


def test_mistakes_in_the_command_line_are_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Unknown tables, and counts that are none.
    """
    for words in (["--events", "Z"], ["-n", "-1"], ["-n", "x"], []):
        with pytest.raises(SystemExit, match="2"):
            main(["stm", "report", *words, *(["app.log"] if words else [])])

    assert "MAXCOUNT" in capsys.readouterr().err


def test_report_that_cannot_be_written_is_an_error(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It is said which file, and why.
    """
    assert 1 == main(["stm", "report", str(log), "-o", "/nonexistent/report"])

    assert "error: cannot write /nonexistent/report: No such file" in capsys.readouterr().err


def test_older_report_survives_a_full_disk(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A report takes its place as a whole, or not at all.
    """
    report = log.parent / "report"
    report.write_text("an older one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        code = main(["stm", "report", "app.log", "-o", "report"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

    assert 1 == code
    assert "error: cannot write report: File too large\n" == capsys.readouterr().err
    assert "an older one" == report.read_text()
    assert ["app.log", "report"] == sorted(path.name for path in log.parent.iterdir())


def test_report_can_go_into_a_pipe(log: Path) -> None:
    """
    What is no regular file is written to, and stays what it is.
    """
    os.mkfifo("pipe")
    read: list[str] = []
    reader = Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()

    assert 0 == main(["stm", "report", "app.log", "-o", "pipe"])

    reader.join()
    assert read[0].startswith(f"{log.name}\n")
    assert Path("pipe").is_fifo()


def test_place_without_text_is_shown(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A position may be anything, and the report says what it is.
    """
    writer = LogWriter()
    for number in range(9):
        for first in (b"", (57).to_bytes(8, "little"), marker(3).encode()):
            writer.add(number, 1, "START").add(number, 1, "WRITE_READ", first)
            writer.add(number, 1, "ABORT")
    log.write_bytes(writer.content)

    assert 0 == main(["stm", "report", "app.log"])

    out = capsys.readouterr().out
    assert "\n  (no position: not in a Python function)\n" in out
    assert "\n  (position number 57: " in out
