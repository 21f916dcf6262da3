"""Runs ``gilscope doctor`` in some surroundings and picks things out of its report.

Each run compiles the probes, which takes seconds. `examined` makes the same report with what a
trial of the probes has shown before, for tests of what doctor says about a process.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gilscope.doctor.examine import examine
from gilscope.doctor.probe_trial import Trial
from gilscope.reports.doctor import json as doctor_json
from support.commands.gilscope import Outcome, gilscope

__all__ = [
    "AS_NOBODY",
    "NOBODY",
    "STAY",
    "SYSTEM_PYTHON",
    "doctor",
    "examined",
    "found",
    "missing",
    "running",
    "with_only",
]

STAY = "import sys; sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()"
"""A program for `running`."""
SYSTEM_PYTHON = "/usr/bin/python3.11"
NOBODY = 65534
AS_NOBODY = ["setpriv", "--reuid=65534", "--clear-groups"]


@contextmanager
def running(command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[int]:
    """Start a process that says a line when it is ready and stays until its input ends."""
    with subprocess.Popen(
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert b"ready\n" == process.stdout.readline()
        yield process.pid


def doctor(*arguments: str, wrapper: Sequence[str] = (), **extra: str) -> dict[str, Any]:
    """Return doctor's report, run by the command *wrapper*, with *extra* in its environment."""
    command = ("doctor", "--format", "json", *arguments)
    return _report(gilscope(*command, wrapper=wrapper, extra=extra))


def examined(pid: int, trial: Trial) -> dict[str, Any]:
    """Return doctor's report on process *pid*, made in here; *trial* is of this machine."""
    diagnosis = examine(pid, all_pythons=False, attempt=lambda: trial)
    report: dict[str, Any] = json.loads(doctor_json.render(diagnosis))
    return report


def _report(outcome: Outcome) -> dict[str, Any]:
    assert "" == outcome.messages
    report: dict[str, Any] = json.loads(outcome.output)
    assert outcome.exit_code == report["exit_code"]
    return report


def missing(subject: dict[str, Any]) -> list[str]:
    """Return the names of the checks of *subject* that found something missing."""
    return [check["name"] for check in subject["checks"] if check["status"] == "missing"]


def found(subject: dict[str, Any], name: str) -> str:
    """Return what check *name* of *subject* has found."""
    (words,) = [check["found"] for check in subject["checks"] if check["name"] == name]
    return str(words)


def with_only(*capabilities: str) -> list[str]:
    """Return the wrapper that leaves root these capabilities, named like ``sys_ptrace``."""
    wanted = "".join(f",+{name}" for name in capabilities)
    return ["setpriv", f"--bounding-set=-all{wanted}"]
