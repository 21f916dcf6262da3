"""A coverage-guided search for bytes that the reader of STM logs does not survive."""

from pathlib import Path

import pytest

from stm.searcher import CLANG, build, search

_SEARCH_S = 20


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that searches."""
    if CLANG is None:
        pytest.skip("there is no clang (apt install clang-14 libclang-rt-14-dev)")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_log"
    build(program)
    return program


@pytest.mark.slow
def test_no_bytes_crash_the_reader(searcher: Path) -> None:
    """
    Neither in some seconds of search from sound logs, nor with what that has come to.
    """
    found = search(searcher, _SEARCH_S)

    assert 0 == found.returncode, found.stderr[-4000:]
    assert "stat::number_of_executed_units" in found.stderr
