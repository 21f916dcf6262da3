"""Who held the GIL, by gilscope and by `py-spy --gil`, of the same run."""

import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import frames_of, only_process
from support.real.environment import environment

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("GILSCOPE_ALL_PROGRAMS"), reason="opt-in: make test-real"
    ),
]

_SECONDS = 40
_FUNCTIONS = ("render", "index", "poll")
_POINTS = 0.03


def _by_py_spy(file: Path) -> Counter[str]:
    """Return how many samples each function has in *file*, which has a folded stack a line."""
    found: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        names = {frame.partition(" (")[0] for frame in stack.split(";")}
        for function in names & set(_FUNCTIONS):
            found[function] += int(count)
    return found


def _by_gilscope(text: str) -> Counter[str]:
    report = only_process(text)
    found: Counter[str] = Counter()
    for held in report["held_by"]:
        names = {frame["function"] for frame in frames_of(report, held["holder"])}
        for function in names & set(_FUNCTIONS):
            found[function] += round(1e6 * held["held_s"])
    return found


def _shares(found: Mapping[str, int]) -> dict[str, float]:
    whole = sum(found.values())
    return {function: count / whole for function, count in found.items()}


def test_both_see_the_same_holders(tmp_path: Path) -> None:
    """
    The same ranking, and shares within 3 points.
    """
    folded, report = tmp_path / "folded", tmp_path / "report.json"
    py_spy = environment("more_requirements.txt") / "py-spy"
    with started(["/usr/bin/python3"], "three_shares.py") as workload:
        other = subprocess.Popen(
            [
                *(py_spy, "record", "--gil", "--pid", str(workload.pid), "--rate", "200"),
                *("--duration", str(_SECONDS), "--format", "raw", "--output", str(folded)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        recorded = gilscope(
            *("record", "-p", str(workload.pid), "-d", str(_SECONDS), "-o", str(report))
        )
        assert 0 == other.wait(_SECONDS)
    assert 0 == recorded.exit_code
    ours, theirs = _shares(_by_gilscope(report.read_text())), _shares(_by_py_spy(folded))

    assert list(_FUNCTIONS) == sorted(ours, key=lambda name: -ours[name])
    assert list(_FUNCTIONS) == sorted(theirs, key=lambda name: -theirs[name])
    assert {name: pytest.approx(theirs[name], abs=_POINTS) for name in theirs} == ours
