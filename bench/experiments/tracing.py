"""Runs gilscope beside a program and reads what it says."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.experiments.cells import CellFailed
from bench.experiments.processes import OWN
from bench.tool import tool_started

__all__ = ["Report", "recorded", "recorded_transactions"]

_NS_PER_US = 1000
_LEAST_S = 0.3
_SETTLE_S = 1.0
_LEAST_OF_TRANSACTIONS_S = 2.0
"""Interrupted in its first moments, which are long on a busy machine, it reports nothing."""


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
        # A thread that has only begun has none yet.
        return [each for each in threads if (each["role"] or "").partition(" ")[0] == role]

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

    def share_of_state(self, state: str) -> float:
        """Return the share of all waits' time for which the holder was in that state."""
        held_up = self.process["held_up"]
        whole = float(sum(each["wait_s"] for each in held_up))
        part = float(sum(each["wait_s"] for each in held_up if each["state"] == state))
        return part / whole if whole else 0.0

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
            began_s = time.monotonic()
            # Holds are counted from a moment after that word, which nothing tells.
            time.sleep(_SETTLE_S if mode == "full" else 0.0)
            yield report
            # One that is interrupted in its first moments has not begun to record.
            time.sleep(max(0.0, began_s + _LEAST_S - time.monotonic()))
        processes = json.loads(whole.read_text())["processes"]
        if len(processes) != 1 or not processes[0]["process"]["valid"]:
            raise CellFailed("gilscope did not trace the process to its end")
        report.process = processes[0]
        if spans:
            report.spans = json.loads(single.read_text())["traceEvents"]


@contextmanager
def recorded_transactions(pid: int) -> Iterator[dict[str, Any]]:
    """Record all transactions of process *pid* while the block runs; raises ToolFailed.

    What is yielded is the JSON report, and empty until the block is over.
    """
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "report.json"
        command = [sys.executable, "-m", "gilscope", "record", "--pid", str(pid), "--mode", "full"]
        command.append(f"--format=json={whole}")
        with tool_started(command, "Tracing the transactions of", OWN.environment()):
            began_s = time.monotonic()
            yield report
            time.sleep(max(0.0, began_s + _LEAST_OF_TRANSACTIONS_S - time.monotonic()))
        report |= json.loads(whole.read_text())
        if not report["process"]["valid"]:
            raise CellFailed("gilscope did not trace the process to its end")
