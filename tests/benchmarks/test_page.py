"""The page: that it says everything, whatever is missing."""

from pathlib import Path

import pytest
from bench import overhead
from bench.agent_tables import bar_table, parts_table, start_table
from bench.conditions import BASELINE, CONDITIONS, FULL, PY_SPY
from bench.measurement import Failure, Results
from bench.page import page
from bench.pictures import draw_pictures
from bench.raw import read_results, write_results
from bench.works import TIGHT, WORKS

from support.bench.made import CROWD, quiet_round, results


def _written(measured: Results) -> str:
    return page(measured, draw_pictures(measured), "STM tables\n")


def test_every_condition_and_workload_is_on_the_page() -> None:
    """
    A row each, a column each.
    """
    text = _written(results())

    assert [] == [each.title for each in CONDITIONS if f"| {each.title}" not in text]
    assert [] == [each.title for each in WORKS if f"| {each.title} |" not in text]


def test_what_was_measured_apart_has_its_place() -> None:
    """
    The tables about STM logs come from runs of their own.
    """
    assert "## STM logs\n\nSTM tables\n" in _written(results())


def test_the_agents_cpu_time_is_told_by_its_threads() -> None:
    """
    To the last part: what no thread is known for is that of scrapes.
    """
    rows = [line.split(" | ") for line in parts_table([CROWD]).splitlines()[2:]]
    shares = [float(share.rstrip(" |")) for _, share in rows]

    assert [0.20, 0.0, 0.05, 0.02, 0.0, 0.0, 0.13] == shares
    assert pytest.approx(sum(shares)) == 100 * CROWD.cpu_ns / CROWD.wall_ns


def test_a_start_is_told_by_what_goes_by_first() -> None:
    """
    Of Python, and of the modules on top.
    """
    assert (
        "| Python alone | 0.016 [0.016..0.016] |\n"
        "| Python and the agent's modules | 0.310 [0.310..0.310] |\n"
    ) in start_table(results())


def test_pictures_lie_beside_the_page_and_have_words() -> None:
    """
    Whoever cannot see them reads what they show.
    """
    measured = results()
    text = _written(measured)

    assert [] == [
        each.name
        for each in draw_pictures(measured)
        if f"![{each.alt}](pictures/{each.name})" not in text or len(each.alt) < len(each.name)
    ]


def test_a_page_of_little_can_be_written() -> None:
    """
    One workload, contention mode, no crowd.
    """
    runs = [each for work in WORKS for each in quiet_round(work)]
    text = _written(results(runs, crowds=[], left_out=[(FULL.title, "no such mode")]))

    assert f"Not measured here: {FULL.title} (no such mode)." in text
    assert f"| {BASELINE.title}" in text


def test_failed_runs_are_told() -> None:
    """
    With workload, round and reason.
    """
    failure = Failure(2, TIGHT.key, PY_SPY.key, "ended with 1")

    assert f"Failed in round 3 of tight: {PY_SPY.title} (ended with 1)." in _written(
        results(failures=[failure])
    )


def test_raw_figures_can_be_read_again(tmp_path: Path) -> None:
    """
    So that the page can be written again without measuring again.
    """
    measured = results(failures=[Failure(0, TIGHT.key, PY_SPY.key, "no")])
    write_results(measured, tmp_path / "raw.json")

    assert measured == read_results(tmp_path / "raw.json")


def test_raw_figures_of_another_form_are_refused(tmp_path: Path) -> None:
    """
    An older bench wrote other fields.
    """
    (tmp_path / "raw.json").write_text('{"rounds": 5}')

    with pytest.raises(ValueError, match="measure again"):
        read_results(tmp_path / "raw.json")


def test_bars_are_printed_as_they_stand_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    So that whoever runs it need not look for them; then comes where everything is.
    """
    measured, output = results(), tmp_path / "overhead.md"
    monkeypatch.setattr(overhead, "_RAW", tmp_path)
    monkeypatch.setattr("sys.argv", ["overhead.py", "--again", "--output", str(output)])
    write_results(measured, tmp_path / "overhead.json")

    assert 0 == overhead.main()
    printed = capsys.readouterr().out
    assert f"{bar_table(measured)}\n{output} ({tmp_path / 'overhead.json'})\n" == printed
    assert bar_table(measured) in output.read_text()
