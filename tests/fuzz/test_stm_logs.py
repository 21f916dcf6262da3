"""A coverage-guided search for bytes that the reader of STM logs does not survive."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.stm_log.searcher import AS_A_SMALL_CHILD, CLANG, build, search

_SEARCH_S = 20


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that searches."""
    if CLANG is None:
        pytest.skip("there is no clang (apt install clang-14 libclang-rt-14-dev)")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_log"
    build(program)
    return program


def test_memory_of_the_tests_does_not_count_as_the_searchers() -> None:
    """
    However much the process had that starts it.
    """
    ballast = bytearray(b"x" * (200 << 20))
    code = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [*AS_A_SMALL_CHILD, sys.executable, "-c", code]
    peak = subprocess.run(command, check=True, capture_output=True, text=True)

    assert len(ballast) > 4 * 1024 * int(peak.stdout)


@pytest.mark.slow
def test_no_bytes_crash_the_reader(searcher: Path) -> None:
    """
    Neither in some seconds of search from sound logs, nor with what that has come to.
    """
    found = search(searcher, _SEARCH_S)

    assert 0 == found.returncode, found.stderr[-4000:]
    assert "stat::number_of_executed_units" in found.stderr
