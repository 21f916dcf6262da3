"""Builds the program that searches for bytes that the reader of STM logs does not survive."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from support.paths import AGENT, TESTS
from support.stm_log.corpus import content_of, truth
from support.stm_log.program import played_log
from support.stm_log.writer import EVENTS, LogWriter, marker

__all__ = ["AS_A_SMALL_CHILD", "CLANG", "LONGEST_INPUT", "SMALL_LIMITS", "build", "search", "seeds"]

CLANG = shutil.which("clang-14") or shutil.which("clang")
LONGEST_INPUT = 3000
SMALL_LIMITS = (
    "STM_BINS=8",
    "STM_DETECTOR_THREADS=16",
    "STM_MOST_ENTRIES=6",
    "STM_RECORDS_TO_DECIDE=40",
    "STM_SLOTS_BEFORE_SWEEP=16",
)
"""So that short inputs come beyond them."""

AS_A_SMALL_CHILD = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""The kernel counts what a process had before it became another program as its own peak, by which
its memory is judged here: and the process of many tests may have had more than it is allowed."""

_SOURCES = AGENT / "native" / "stm_log"
_OF_PYTHON = {"module.c", "snapshot.c"}


def build(program: Path, limits: Sequence[str] = SMALL_LIMITS) -> None:
    """Compile *program*, with checks of memory and of undefined behaviour."""
    assert CLANG is not None
    command = [
        CLANG,
        *("-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"),
        *("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
        *(f"-D{limit}" for limit in limits),
        f"-I{_SOURCES}",
        str(TESTS / "support" / "stm_log" / "fuzz_log.c"),
        *(str(path) for path in sorted(_SOURCES.glob("*.c")) if path.name not in _OF_PYTHON),
        *("-o", str(program)),
    ]
    subprocess.run(command, check=True)


def seeds() -> list[bytes]:
    """Return inputs to begin with: logs of all kinds behind the bytes that choose the options."""
    plays = [played_log(table, 60, seed) for seed, table in enumerate(EVENTS)]
    plays += [played_log("C7", 60, 9, layout="L7a"), played_log("E16", 100, 9, threads=60)]
    raw = LogWriter().add(0, 1, "START").raw(b"\0" * 60).raw(plays[5].content[16:])
    late = LogWriter().add(0, 1, "START").add(1, 1, "WRITE_READ", marker(1))
    torn = LogWriter().add(0, 1, "START").add(1, 1, "INEVITABLE", marker(1))
    torn.add(2, 1, "WAIT_OTHER_INEVITABLE").add(3, 1, "START").add(4, 1, "GC_MINOR_START")
    torn.add(5, 1, "START").add(6, 1, "INEVITABLE", marker(2)).add(7, 1, "ABORT")
    contents = [play.content for play in (*plays, raw, late, torn)]
    contents += [content_of(name)[:LONGEST_INPUT] for name in truth()]
    # As it is found out, in both rules, with the header that the content has itself.
    return [bytes((8, rules, 1)) + content for content in contents for rules in (0x20, 0x24)]


def search(program: Path, seconds: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Run *program* for *seconds* on the seeds, in its folder."""
    corpus = program.with_name(f"{program.name}_seeds")
    corpus.mkdir(exist_ok=True)
    for number, content in enumerate(seeds()):
        (corpus / str(number)).write_bytes(content)
    command = [
        *AS_A_SMALL_CHILD,
        str(program),
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT}",
        *("-timeout=5", "-rss_limit_mb=512", "-print_final_stats=1"),
        *(*more, str(corpus)),
    ]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    return subprocess.run(
        command, cwd=program.parent, env=environment, check=False, capture_output=True, text=True
    )
