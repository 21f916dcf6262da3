"""Runs gilscope beside a program and reads what it says."""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.experiments.cells import CellFailed
from bench.experiments.processes import OWN
from bench.tool import tool_started

__all__ = ["Report", "recorded"]

_NS_PER_US = 1000


@dataclass(slots=True)
class Report:
    """What was recorded; empty until the block is over."""

    process: Mapping[str, Any]
    """The process's part of the JSON report."""
    spans: Sequence[Mapping[str, Any]] = ()
    """The events of the Perfetto report, where it was asked for."""

    def threads(self, role: str) -> list[Mapping[str, Any]]:
        """Return the threads whose role is the function *role*."""
        threads: list[Mapping[str, Any]] = self.process["threads"]
        return [each for each in threads if each["role"].partition(" ")[0] == role]

    def wait_s(self, role: str, kind: str | None = None) -> float:
        """Return what the threads of *role* waited in all, or of one kind."""
        return sum(
            float((each if kind is None else each["kinds"].get(kind, {})).get("wait_s", 0.0))
            for each in self.threads(role)
        )

    def waits(self, role: str, kind: str | None = None) -> int:
        """Return how often."""
        return sum(
            int((each if kind is None else each["kinds"].get(kind, {})).get("waits", 0))
            for each in self.threads(role)
        )

    def waits_ns(self, role: str) -> list[int]:
        """Return every wait of the threads of *role*, from the Perfetto report."""
        tids = {each["tid"] for each in self.threads(role)}
        return [
            round(each["dur"] * _NS_PER_US)
            for each in self.spans
            if each.get("cat") == "wait" and each.get("tid") in tids
        ]

    def held_by(self, function: str, kind: str) -> float:
        """Return the share of the waits' time of *kind* whose holder was below *function*."""
        whole = below = 0.0
        for edge in self.process["edges"]:
            if edge["kind"] == kind:
                whole += edge["wait_s"]
                holder = edge["holder"]
                stack = () if holder is None else _functions(self.process, holder)
                below += edge["wait_s"] if function in stack else 0.0
        return below / whole if whole else 0.0


def _functions(process: Mapping[str, Any], stack: int) -> list[str]:
    frames = process["frames"]
    return [frames[each]["function"] for each in process["stacks"][stack]["frames"]]


@contextmanager
def recorded(pid: int, *, mode: str = "contention", spans: bool = False) -> Iterator[Report]:
    """Record process *pid* while the block runs; raises ToolFailed and CellFailed.

    With *spans*, each wait is kept by itself.
    """
    report = Report({})
    with tempfile.TemporaryDirectory() as folder:
        whole, single = Path(folder) / "report.json", Path(folder) / "spans.json"
        command = [sys.executable, "-m", "gilscope", "record", "--pid", str(pid), "--no-children"]
        command += ["--mode", mode, f"--format=json={whole}"]
        if spans:
            command.append(f"--format=perfetto={single}")
        with tool_started(command, "Tracing the GIL of", OWN.environment()):
            yield report
        processes = json.loads(whole.read_text())["processes"]
        if len(processes) != 1 or not processes[0]["process"]["valid"]:
            raise CellFailed("gilscope did not trace the process to its end")
        report.process = processes[0]
        if spans:
            report.spans = json.loads(single.read_text())["traceEvents"]
