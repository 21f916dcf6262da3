"""Runs the cells of an experiment in turns, keeps each as it is measured, and stops in time."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.experiments import store
from bench.experiments.cells import BUSY, MEASURED, Cell, CellFailed, Experiment, Outcome, Results
from bench.experiments.gate import Gate, cpu_sets, verdict_on_stolen
from bench.machine import StolenTime
from bench.tool import ToolFailed

from support.interpreters.interpreter import Unavailable

__all__ = ["Runner", "planned", "planned_s"]

_GATE_S = 1.0
"""At most, for one cell on two CPUs."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Runner:
    """How, and for how long, experiments are run."""

    folder: Path
    """Where their results are kept."""
    about: Mapping[str, Any]
    is_quick: bool
    deadline_s: float
    """On the monotonic clock; no cell is begun that would not be over by then."""
    tell: Callable[[str], None]
    gate: Gate = field(default_factory=Gate)
    pause_s: float = 5.0
    """Before the next try where the gate was shut."""

    def run(self, experiment: Experiment) -> Results:
        """Measure what was not measured yet, and return all that is known then."""
        results = store.read(experiment.name, self.folder)
        about = {
            **self.about,
            "seconds of measuring": results.about.get("seconds of measuring", 0.0),
        }
        cells = list(experiment.cells(self.is_quick))
        for number, cell in planned(cells, is_quick=self.is_quick):
            kept = _kept(results, cell, number)
            if kept is not None and kept.state == MEASURED:
                continue
            if time.monotonic() + cell.seconds > self.deadline_s:
                self.tell(f"{experiment.name}: stopped in time; run it again to continue")
                break
            self.tell(f"{experiment.name} {cell.key}, round {number + 1}")
            began_s = time.monotonic()
            outcome = self._measured(cell, number)
            if outcome.state != MEASURED:
                self.tell(f"  {outcome.state}")
            about["seconds of measuring"] = round(
                about["seconds of measuring"] + time.monotonic() - began_s, 1
            )
            others = tuple(each for each in results.outcomes if each is not kept)
            results = Results(experiment.name, about, (*others, outcome))
            store.write(results, experiment.source, self.folder)
        return results

    def _measured(self, cell: Cell, number: int) -> Outcome:
        """Return the figures of one run, or why there are none."""

        def outcome(state: str, figures: dict[str, Any] | None = None) -> Outcome:
            return Outcome(cell.key, dict(cell.axes), number, state, figures or {})

        sets = cpu_sets(os.sched_getaffinity(0))
        if cell.cpus not in sets:
            return outcome(f"not measured: this machine has no CPU set {cell.cpus}")
        is_gated = cell.timed and not self.is_quick
        for attempt in range(_TRIES if is_gated else 1):
            if attempt:
                time.sleep(self.pause_s)
            stolen = StolenTime()
            if is_gated and self._is_busy(self.gate.is_shut(sets[cell.cpus])):
                continue
            try:
                figures = cell.measure()
            except (CellFailed, ToolFailed, Unavailable, OSError) as error:
                return outcome(f"not measured: {error}")
            if not is_gated:
                return outcome(MEASURED, figures)
            before = self.gate.least_share
            why, share = self.gate.is_shut(sets[cell.cpus]), stolen.share()
            if not self._is_busy(why or verdict_on_stolen(share)):
                return replace(
                    outcome(MEASURED, figures),
                    spin_share=round(min(before, self.gate.least_share), 3),
                    stolen_share=round(share, 4),
                )
        return outcome(BUSY)

    def _is_busy(self, why: str | None) -> bool:
        if why:
            self.tell(f"  busy: {why}")
        return why is not None


def planned(cells: Sequence[Cell], *, is_quick: bool) -> Iterator[tuple[int, Cell]]:
    """Yield rounds and cells in the order in which they are run: each round has all arms."""
    rounds = 1 if is_quick else max((cell.rounds for cell in cells), default=0)
    for number in range(rounds):
        for cell in cells:
            if number < cell.rounds:
                yield number, cell


def planned_s(cells: Sequence[Cell], *, is_quick: bool) -> float:
    """Return how long that takes on a machine on which every gate is open."""
    gated = 0.0 if is_quick else _GATE_S
    return sum(
        cell.seconds + (gated if cell.timed else 0.0)
        for _, cell in planned(cells, is_quick=is_quick)
    )


def _kept(results: Results, cell: Cell, number: int) -> Outcome | None:
    for each in results.outcomes:
        if (each.key, each.round) == (cell.key, number):
            return each
    return None
