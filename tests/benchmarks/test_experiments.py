"""The experiments of the sources: each runs to its end, and its known answers come."""

from collections import Counter
from pathlib import Path

import pytest
from bench.experiments.__main__ import main
from bench.experiments.inventory import ROWS
from bench.experiments.running import planned_s
from bench.experiments.table import EXPERIMENTS

_NEED_NO_PROBES = ("stm_golden", "stm_tornado")
_MOST_S = 3600


def _run(name: str, folder: Path) -> int:
    return main(["--only", name, "--quick", "--folder", str(folder)])


@pytest.mark.parametrize("name", _NEED_NO_PROBES)
def test_it_runs_without_probes(name: str, tmp_path: Path) -> None:
    """
    One round: the figures of the original tool come out.
    """
    assert 0 == _run(name, tmp_path)
    assert "not measured" not in (tmp_path / f"{name}.md").read_text()


# The first run fetches and compiles what they need.
@pytest.mark.timeout(600)
@pytest.mark.live
@pytest.mark.beside_others
@pytest.mark.parametrize(
    "name", [each.name for each in EXPERIMENTS if each.name not in _NEED_NO_PROBES]
)
def test_it_runs(name: str, tmp_path: Path) -> None:
    """
    One round of every kind of cell, beside others: nothing is compared but counts.
    """
    assert 0 == _run(name, tmp_path)


def test_a_full_run_is_over_in_an_hour() -> None:
    """
    By its own plan.
    """
    assert _MOST_S >= sum(planned_s(each.cells(False), is_quick=False) for each in EXPERIMENTS)


def test_names_are_unique_and_rows_are_known() -> None:
    """
    A cell is kept by its key, and each source has a row in the index.
    """
    rows = {row.key for row in ROWS}
    for each in EXPERIMENTS:
        counts = Counter(cell.key for cell in each.cells(False))
        assert [] == [key for key, count in counts.items() if count > 1], each.name
        assert rows >= set(each.sources), each.name


def test_each_row_has_a_page_or_a_reason() -> None:
    """
    The index never says that something is missing without saying why.
    """
    about = {key for each in EXPERIMENTS for key in each.sources}
    assert [] == [row.key for row in ROWS if bool(row.missing) == (row.key in about)]


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The others are named.
    """
    assert 2 == main(["--only", "unheard", "--quick"])
    assert "stm_golden" in capsys.readouterr().err
