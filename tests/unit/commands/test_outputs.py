"""Which reports are asked for, and where they go."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.commands import outputs
from gilscope.commands.outputs import (
    Output,
    add_format_options,
    chosen_outputs,
    wants_moment,
    wants_snapshots,
    wants_timeline,
    write_reports,
)
from gilscope.model.timeline import Timeline
from gilscope.reports.gil.profiles import pprof
from gilscope.reports.gil.text import report as text_report
from gilscope.reports.gil.text import screen
from support.commands.json_reports import only_process
from support.recordings.gil import session_of, with_edges


def _chosen(*words: str) -> Sequence[Output]:
    parser = argparse.ArgumentParser()
    add_format_options(parser)
    return chosen_outputs(parser.parse_args(words))


def test_text_goes_to_standard_output_unless_told_otherwise(tmp_path: Path) -> None:
    """
    -o alone names the file of the text.
    """
    file = tmp_path / "report"

    assert (Output("text", None),) == _chosen()
    assert (Output("text", file),) == _chosen("-o", str(file))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("waits.html", "html"),
        ("WAITS.HTM", "html"),
        ("waits.json", "json"),
        ("waits.speedscope.json", "speedscope"),
        ("waits.perfetto.json", "perfetto"),
        ("waits.folded", "collapsed"),
        ("waits.pb.gz", "pprof"),
        ("waits.otlp.json", "otlp-profiles"),
        ("waits.md", "markdown"),
        ("waits.om", "openmetrics"),
        ("waits.prom", "prometheus"),
        ("waits.txt", "text"),
        ("json", "text"),
        ("waits.html.old", "text"),
    ],
)
def test_the_name_of_the_file_says_what_is_in_it(tmp_path: Path, name: str, form: str) -> None:
    """
    Unless a format is said.
    """
    file = tmp_path / name

    assert (Output(form, file),) == _chosen("-o", str(file))
    assert (Output("text", file),) == _chosen("--format", "text", "-o", str(file))


def test_each_format_has_its_own_place(tmp_path: Path) -> None:
    """
    One without a file goes to -o or to standard output.
    """
    html, waits, report = (tmp_path / name for name in ("a=b.html", "waits.json", "report"))
    words = ["--format", "text", "--format", f"html={html}", "--format", f"json={waits}"]

    assert (Output("text", None), Output("html", html), Output("json", waits)) == _chosen(*words)
    assert (Output("text", report), Output("html", html), Output("json", waits)) == _chosen(
        *words, "-o", str(report)
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--format", "text", "--format", "json"], "text and json cannot go to the same place"),
        (["--format", "json=a", "-o", "b"], "nothing is left for -o b"),
        (["--format", "json=a", "--format", "html=link"], "two reports cannot go to the same file"),
        (["--format", "json=a", "--format", "html", "-o", "a"], "two reports cannot go to the"),
    ],
)
def test_contradictions_are_refused(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    No report may overwrite another, and no option may be in vain.
    """
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("a")

    with pytest.raises(ValueError, match=reason):
        _chosen(*words)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("xml", "there is no format 'xml' (choose from text, json, html, markdown, collapsed"),
        ("json=/nonexistent/report", "cannot write /nonexistent/report: No such file"),
        ("json=/", "cannot write /: Is a directory"),
    ],
)
def test_places_are_tried_at_once(
    word: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A file that cannot be written is a usage error, before anything is traced.
    """
    with pytest.raises(SystemExit, match="2"):
        _chosen("--format", word)

    assert f"argument --format: {reason}" in capsys.readouterr().err


def test_what_is_no_text_is_not_for_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A pipe and a file may have it.
    """
    file = tmp_path / "waits.pb.gz"
    assert (Output("pprof", None),) == _chosen("--format", "pprof")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    with pytest.raises(ValueError, match="pprof is not for a terminal: give it a file with -o"):
        _chosen("--format", "pprof")
    assert (Output("pprof", file),) == _chosen("-o", str(file))


def test_timeline_is_wanted_for_pictures_of_time() -> None:
    """
    Sums are enough for all other formats.
    """
    assert ["perfetto"] == [
        form for form in outputs.FORMATS if wants_timeline(_chosen("--format", form))
    ]
    assert wants_timeline(_chosen("--format", "text", "--format", "perfetto=/dev/null"))


def test_moment_is_wanted_for_pages() -> None:
    """
    Only these draw it.
    """
    assert ["html"] == [form for form in outputs.FORMATS if wants_moment(_chosen("--format", form))]


def test_looks_are_wanted_for_history() -> None:
    """
    Only OpenMetrics says what was known when.
    """
    assert ["openmetrics"] == [
        form for form in outputs.FORMATS if wants_snapshots(_chosen("--format", form))
    ]


def test_text_is_one_screen_unless_it_is_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    What is printed scrolls away.
    """
    session, file = session_of(with_edges()), tmp_path / "waits.txt"

    assert write_reports([Output("text", None), Output("text", file)], session)
    assert screen.render(session) == capsys.readouterr().out
    assert text_report.render(with_edges()) == file.read_text()


def test_all_reports_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each as its own module makes it.
    """
    recording = with_edges()
    outputs = [Output("text", None), Output("json", tmp_path / "waits")]

    assert write_reports(outputs, session_of(recording), whole=True)
    assert text_report.render(recording) == capsys.readouterr().out
    assert 4711 == only_process((tmp_path / "waits").read_text())["process"]["pid"]


@pytest.mark.parametrize("form", outputs.FORMATS)
def test_every_format_can_be_written(form: str, tmp_path: Path) -> None:
    """
    The module that its name stands for is there.
    """
    file = tmp_path / "report"
    recording = replace(with_edges(), timeline=Timeline((), dropped=0))

    assert write_reports([Output(form, file)], session_of(recording))
    assert 0 < file.stat().st_size


def test_report_that_cannot_be_written_does_not_take_the_others_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It is said which one failed and why.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    outputs = [Output("text", folder), Output("json", tmp_path / "waits"), Output("text", None)]

    assert not write_reports(outputs, session_of(with_edges()))

    written = capsys.readouterr()
    assert f"error: cannot write the text report to {folder}: Is a directory\n" == written.err
    assert written.out.startswith("app.py, pid 4711")
    assert 0 < (tmp_path / "waits").stat().st_size


def test_report_that_cannot_be_made_does_not_take_the_others_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A mistake in one module costs its own report only.
    """

    def fail(_recording: object) -> str:
        raise KeyError("spam")

    monkeypatch.setattr("gilscope.reports.session_json.render", fail)
    outputs = [Output("json", tmp_path / "waits"), Output("text", None)]

    assert not write_reports(outputs, session_of(with_edges()))

    written = capsys.readouterr()
    assert "cannot write the json report to " in written.err
    assert written.err.endswith(": KeyError('spam')\n")
    assert written.out.startswith("app.py, pid 4711")


def test_bytes_are_written_as_they_are(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """
    To a file and to standard output.
    """
    session, file = session_of(with_edges()), tmp_path / "waits"

    assert write_reports([Output("pprof", None), Output("pprof", file)], session)
    assert pprof.render(with_edges()) == file.read_bytes() == capsysbinary.readouterr().out


class _Closed:
    def isatty(self) -> bool:
        return False

    def write(self, _text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        pass


def test_files_are_complete_when_the_reader_of_standard_output_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Standard output is written last, whatever order was asked for.
    """
    monkeypatch.setattr(sys, "stdout", _Closed())
    outputs = [Output("text", None), Output("json", tmp_path / "waits")]

    with pytest.raises(BrokenPipeError):
        write_reports(outputs, session_of(with_edges()))

    assert 0 < (tmp_path / "waits").stat().st_size
