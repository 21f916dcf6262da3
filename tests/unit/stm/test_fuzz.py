"""A coverage-guided search for bytes that the reader of STM logs does not survive."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from stm.corpus import content_of, truth
from stm.program import played_log
from stm.writer import EVENTS, LogWriter, marker

_ROOT = Path(__file__).resolve().parents[3]
_SOURCES = _ROOT / "agent" / "stm_log"
_OF_PYTHON = {"module.c", "snapshot.c"}
_CLANG = shutil.which("clang-14") or shutil.which("clang")
_SEARCH_S = 20
_LONGEST_INPUT = 3000
# Small limits, so that short inputs come beyond them.
_LIMITS = (
    "STM_BINS=8",
    "STM_DETECTOR_THREADS=16",
    "STM_MOST_ENTRIES=6",
    "STM_RECORDS_TO_DECIDE=40",
    "STM_SLOTS_BEFORE_SWEEP=16",
)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that searches, with checks of memory and of undefined behaviour."""
    if _CLANG is None:
        pytest.skip("there is no clang (apt install clang-14 libclang-rt-14-dev)")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_log"
    command = [
        _CLANG,
        *("-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"),
        *("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
        *(f"-D{limit}" for limit in _LIMITS),
        f"-I{_SOURCES}",
        str(_ROOT / "tests" / "stm" / "fuzz_log.c"),
        *(str(path) for path in sorted(_SOURCES.glob("*.c")) if path.name not in _OF_PYTHON),
        *("-o", str(program)),
    ]
    subprocess.run(command, check=True)
    return program


def _seeds() -> list[bytes]:
    plays = [played_log(table, 60, seed) for seed, table in enumerate(EVENTS)]
    plays += [played_log("C7", 60, 9, layout="L7a"), played_log("E16", 100, 9, threads=60)]
    raw = LogWriter().add(0, 1, "START").raw(b"\0" * 60).raw(plays[5].content[16:])
    late = LogWriter().add(0, 1, "START").add(1, 1, "WRITE_READ", marker(1))
    contents = [play.content for play in (*plays, raw, late)]
    contents += [content_of(name)[:_LONGEST_INPUT] for name in truth()]
    # As it is found out, in both rules, with the header that the content has itself.
    return [bytes((8, rules, 1)) + content for content in contents for rules in (0x20, 0x24)]


def _run(searcher: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    return subprocess.run(
        [str(searcher), *arguments],
        cwd=searcher.parent,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_no_bytes_crash_the_reader(searcher: Path) -> None:
    """
    Neither in some seconds of search from sound logs, nor with what that has come to.
    """
    seeds = searcher.parent / "seeds"
    seeds.mkdir()
    for number, content in enumerate(_seeds()):
        (seeds / str(number)).write_bytes(content)

    found = _run(
        searcher,
        f"-max_total_time={_SEARCH_S}",
        f"-max_len={_LONGEST_INPUT}",
        "-timeout=5",
        "-rss_limit_mb=512",
        "-print_final_stats=1",
        str(seeds),
    )

    assert 0 == found.returncode, found.stderr[-4000:]
    assert "stat::number_of_executed_units" in found.stderr
