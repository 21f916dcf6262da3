"""``record --fail-if`` and ``diff``: a script learns by the exit code whether too much was lost."""

import json
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import assert_fits_schema

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_a_limit_that_is_passed_ends_with_its_code(tmp_path: Path) -> None:
    """
    After the report, which is written; the two recordings are compared likewise.
    """
    busy, quiet = tmp_path / "busy.json", tmp_path / "quiet.json"
    with started(["/usr/bin/python3"], "convoy.py", "--client") as workload:
        words = ("-p", str(workload.pid), "--no-children", "-d", "1", "-o", str(busy))
        passed = gilscope("record", *words, "--fail-if", "waiting > 0.01")
    idle = ("--", "/usr/bin/python3", "-c", "import time; time.sleep(0.5)")
    kept = gilscope("record", "-o", str(quiet), "--fail-if", "waiting > 0.9", *idle)
    better = gilscope("diff", str(busy), str(quiet), "--fail-if", "waiting change > 10%")
    worse = gilscope("diff", str(quiet), str(busy), "--fail-if", "waiting change > 10%")
    report = json.loads(busy.read_text())
    assert_fits_schema(report)
    (process,) = report["processes"]

    assert [16, 0, 0, 16] == [each.exit_code for each in (passed, kept, better, worse)]
    assert "error: waiting is " in passed.messages
    assert ": waiting > 0.01\n" in passed.messages
    assert "error: waiting change is +" in worse.messages
    assert "crunch (convoy.py)" in worse.output
    # Two threads compute: all of the time that tracing leaves them is the process' own.
    assert 0.3 < process["totals"]["cpu_s"] < 1.5


def test_code_of_the_command_comes_first() -> None:
    """
    Whoever runs it asks for that, and a limit of something that failed says nothing.
    """
    command = ("--", "/usr/bin/python3", "-c", "import sys; sys.exit(7)")
    failed = gilscope("record", "--fail-if", "waiting >= 0", *command)

    assert 7 == failed.exit_code
