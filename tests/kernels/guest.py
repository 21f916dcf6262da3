"""What runs inside of the machine: loads all programs, then runs the tests; answers in lines.

Each line of the file that is named is a JSON object: ``kernel``, ``loaded``, ``doctor``, ``test``,
and at last ``done``. Nothing is asserted here.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "agent")]
sys.path = [entry for entry in sys.path if entry != str(_TESTS / "kernels")]

import pytest  # noqa: E402 - needs the paths

from gilscope.bpf.features import kernel_features  # noqa: E402 - needs the paths
from gilscope.bpf.loader import Loading  # noqa: E402 - needs the paths
from gilscope.doctor.examine import examine  # noqa: E402 - needs the paths
from gilscope.errors import GilscopeError  # noqa: E402 - needs the paths
from gilscope.gil.probes import program as gil  # noqa: E402 - needs the paths
from gilscope.locks import program as locks  # noqa: E402 - needs the paths
from gilscope.transactions import program as transactions  # noqa: E402 - needs the paths
from kernels.checks import CHECKS  # noqa: E402 - needs the paths
from kernels.refusals import explained  # noqa: E402 - needs the paths

_REQUESTS: Mapping[str, Callable[[], Loading]] = {
    "GIL": gil.begin_loading,
    "GIL, with new processes": lambda: gil.begin_loading(discover=True),
    "GIL, with the timeline": lambda: gil.begin_loading(discover=True, timeline=True),
    "GIL, with the worst moment": lambda: gil.begin_loading(discover=True, moments=True),
    "GIL, with regions": lambda: gil.begin_loading(discover=True, moments=True, regions=True),
    "locks": locks.begin_loading,
    "transactions": transactions.begin_loading,
}


class _Teller:
    """Writes lines; as a plugin of pytest's, one for each test."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_NOCTTY)

    def tell(self, what: str, **values: object) -> None:
        """Write a line, which is out when this returns."""
        line = memoryview(json.dumps({"what": what, **values}).encode() + b"\n")
        while line:
            line = line[os.write(self._fd, line) :]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a test ended, and what it says if it did not pass."""
        if report.when == "call" or report.outcome != "passed":
            self.tell(
                "test",
                test=report.nodeid,
                phase=report.when,
                outcome=report.outcome,
                why=report.longreprtext[-4000:],
            )


def main() -> None:
    """Do it all."""
    teller = _Teller(sys.argv[1])
    features = kernel_features()
    uname = os.uname()
    teller.tell(
        "kernel",
        release=uname.release,
        version=uname.version,
        links=features.uprobe_links,
        tables_may_grow=features.tables_may_grow,
    )
    for name, begin in _REQUESTS.items():
        teller.tell("loaded", request=name, **_load(begin))
    if sys.argv[2:] == ["loads"]:
        return
    diagnosis = examine(None, all_pythons=False)
    for check in (*diagnosis.checks, *diagnosis.features):
        teller.tell("doctor", check=check.name, status=check.status.value, found=check.found)
    chosen = sys.argv[2:] or [check.test for check in CHECKS]
    arguments = ["-v", "--timeout=900", "-o", "faulthandler_timeout=1000"]
    code = pytest.main([*arguments, *chosen], plugins=[teller])
    teller.tell("done", exit_code=int(code))


def _load(begin: Callable[[], Loading]) -> dict[str, Any]:
    with explained() as refused:
        try:
            loaded = begin().finish()
            loaded.programs.load_all()
        except (GilscopeError, OSError, ValueError) as error:
            return {"programs": 0, "refusal": str(error), "refused": refused}
    count = len(loaded.programs)
    is_ahead = loaded.is_ahead
    loaded.close()
    return {"programs": count, "is_ahead": is_ahead, "refusal": ""}


if __name__ == "__main__":
    main()
