"""``gilscope diff``: two reports, and limits that the change must not pass."""

import argparse
from pathlib import Path

import pytest

from gilscope.commands import diff
from gilscope.errors import LimitPassed, NotAReport
from gilscope.reports import session_json
from support.recordings.gil import convoy, session_of, with_edges


@pytest.fixture
def reports(tmp_path: Path) -> tuple[str, str]:
    """Two of them, the second without any slow drop."""
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(session_json.render(session_of(with_edges())))
    after.write_text(session_json.render(session_of(convoy())))
    return str(before), str(after)


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    diff.prepare_parser(parser)
    return diff.run(parser.parse_args(words))


def test_comparison_goes_to_standard_output_or_a_file(
    reports: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    As text, or as Markdown.
    """
    file = tmp_path / "summary.md"

    assert 0 == _run(*reports)
    assert "  longest drop                   41 ms     0 ns  -100 %\n" in capsys.readouterr().out
    assert 0 == _run(*reports, "--format", "markdown", "-o", str(file))
    assert "| longest drop | 41 ms | 0 ns | -100 % |\n" in file.read_text()
    assert "" == capsys.readouterr().out


def test_a_limit_that_is_passed_is_an_error_of_its_own(
    reports: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    After the comparison, which says why.
    """
    limits = ("--fail-if", "waiting > 2", "--fail-if", "waiting >= 0.97")
    with pytest.raises(LimitPassed, match=r"^waiting is 0\.97: waiting >= 0\.97$"):
        _run(*reports, *limits)
    assert "threads waiting" in capsys.readouterr().out
    assert 0 == _run(*reports, "--fail-if", "waiting > 2", "--fail-if", "convoys > 99")
    with pytest.raises(LimitPassed, match="longest_drop change is -100"):
        _run(*reports, "--fail-if", "longest_drop change < -50%")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read .*No such file"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("{}", "no report of gilscope record"),
        ('{"version": 3, "processes": []}', "version 3"),
    ],
)
def test_other_files_are_refused(
    reports: tuple[str, str], tmp_path: Path, content: str | None, words: str
) -> None:
    """
    With what is wrong with them.
    """
    other = tmp_path / "other"
    if content is not None:
        other.write_text(content)

    with pytest.raises(NotAReport, match=words):
        _run(reports[0], str(other))
