"""What doctor has found, as a program reads it."""

import json
from typing import Any

from gilscope.model.diagnosis import Check, Diagnosis, ProcessDiagnosis, PythonLine, TrapCost

__all__ = ["render"]

_VERSION = 1
_NS_PER_S = 1e9


def render(diagnosis: Diagnosis) -> str:
    """Return the report as one JSON object."""
    report = {
        "version": _VERSION,
        "ok": diagnosis.exit_code == 0,
        "exit_code": diagnosis.exit_code,
        "checks": [_check(check) for check in diagnosis.checks],
        "features": [_check(feature) for feature in diagnosis.features],
        "trap_cost": _trap_cost(diagnosis.trap_cost),
        "process": _process(diagnosis.process),
        "processes": None
        if diagnosis.processes is None
        else [_python(line) for line in diagnosis.processes],
    }
    return json.dumps(report, indent=2) + "\n"


def _check(check: Check) -> dict[str, str]:
    return {
        "name": check.name,
        "status": check.status.value,
        "found": check.found,
        "remedy": check.remedy,
    }


def _trap_cost(cost: TrapCost | None) -> dict[str, float | bool] | None:
    if cost is None:
        return None
    return {
        "full_s": cost.full_ns / _NS_PER_S,
        "contention_s": cost.contention_ns / _NS_PER_S,
        "stepped_s": cost.stepped_ns / _NS_PER_S,
        "measured": cost.is_measured,
    }


def _process(process: ProcessDiagnosis | None) -> dict[str, Any] | None:
    if process is None:
        return None
    return {
        "pid": process.pid,
        "name": process.name,
        "python": process.python,
        "build_id": process.build_id,
        "path": process.path,
        "opened_as": process.opened_as,
        "method": process.method,
        "sites": process.sites,
        "gils": process.gils,
        "threads": process.threads,
        "checks": [_check(check) for check in process.checks],
    }


def _python(line: PythonLine) -> dict[str, Any]:
    return {
        "pid": line.pid,
        "name": line.name,
        "python": line.python,
        "method": line.method,
        "reason": line.reason,
        "remedy": line.remedy,
    }
