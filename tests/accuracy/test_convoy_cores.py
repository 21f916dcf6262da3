"""convoy.py says whether there could be a convoy, which free cores decide."""

import importlib
import os
import subprocess
import sys

import pytest

from support.paths import WORKLOADS


@pytest.mark.parametrize(
    ("cores", "used_s", "words"),
    [
        (2, 10.0, "cores were free"),
        (2, 9.5, "cores were free"),
        (2, 4.5, "no convoy is to be expected: others left it 45 % of a core"),
        (1, 10.0, "no convoy is to be expected on 1 core"),
    ],
)
def test_answer_is_known_where_two_cores_are_free(
    cores: int, used_s: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Two threads that compute use a whole core between them, unless somebody else does.
    """
    monkeypatch.syspath_prepend(WORKLOADS)
    convoy = importlib.import_module("convoy")

    assert words == convoy.about_cores(cores, used_s, 10.0)


def test_workload_says_so_at_its_end() -> None:
    """
    On one core, whatever else runs there.
    """
    core = min(os.sched_getaffinity(0))
    program = (sys.executable, str(WORKLOADS / "convoy.py"), "--seconds", "0.1")
    run = subprocess.run(
        ("taskset", "--cpu-list", str(core), *program), check=True, capture_output=True, text=True
    )

    assert "no convoy is to be expected on 1 core\n" in run.stderr
