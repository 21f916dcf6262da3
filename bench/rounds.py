"""Runs every workload under every condition, in turns, round after round."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.conditions import Condition, Target
from bench.footprint import read_cpu_ns, read_ended_children_cpu_ns, read_memory
from bench.measurement import Agent, Run
from bench.tool import ToolFailed, tool_started
from bench.works import IDLE, Work

from accuracy.truth import Workload, started
from interpreter_sources.interpreter import Interpreter

__all__ = ["Bench", "rotated"]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured with, and how much."""

    interpreter: Interpreter
    environment: Mapping[str, str]
    """Of the tools."""
    rounds: int
    pieces: int
    """So many equal pieces of work make one run."""
    divisor: int = 1
    """By which the work of a piece is reduced."""

    def find_usable(
        self, conditions: Sequence[Condition]
    ) -> tuple[list[Condition], dict[str, str]]:
        """Return the conditions that can be measured here, and by key why the others cannot."""
        usable: list[Condition] = []
        reasons: dict[str, str] = {}
        with started(self.interpreter.argv, *IDLE) as workload:
            target = Target(workload.pid, self.interpreter.elf)
            for condition in conditions:
                try:
                    self._try(condition, target)
                except (ToolFailed, OSError) as error:
                    reasons[condition.key] = str(error)
                else:
                    usable.append(condition)
        return usable, reasons

    def run(self, works: Sequence[Work], conditions: Sequence[Condition]) -> Iterator[Run]:
        """Yield each run as it ends; raises ToolFailed and WorkloadFailed.

        One process does the work of one round under all conditions, so that nothing but the
        condition differs between the figures that are divided by each other.
        """
        for number in range(self.rounds):
            for work in works:
                units = str(work.units // self.divisor)
                with started(self.interpreter.argv, work.script, work.option, units) as workload:
                    for condition in rotated(conditions, number):
                        yield self._run_once(number, work, condition, workload)
                    workload.finish()

    def _try(self, condition: Condition, target: Target) -> None:
        if condition.command is not None:
            with tool_started(condition.command(target), condition.marker, self.environment):
                pass

    def _run_once(self, number: int, work: Work, condition: Condition, workload: Workload) -> Run:
        units = int(workload.ready["units"])
        if condition.command is None:
            cpu_ns, agent = self._do_pieces(workload), None
        else:
            command = condition.command(Target(workload.pid, self.interpreter.elf))
            cpu_ns, agent = self._run_traced(condition, command, workload)
            _check_seen(work, condition, agent.seen, units * self.pieces)
        return Run(number, work.key, condition.key, units, cpu_ns, agent)

    def _run_traced(
        self, condition: Condition, command: Sequence[str], workload: Workload
    ) -> tuple[tuple[int, ...], Agent]:
        with tool_started(command, condition.marker, self.environment) as tool:
            before_ns, began_ns = read_cpu_ns(tool.pid), time.monotonic_ns()
            attach_cpu_ns = before_ns + read_ended_children_cpu_ns(tool.pid)
            cpu_ns = self._do_pieces(workload)
            figures = condition.scrape(tool) if condition.scrape else ""
            spent_ns, wall_ns = read_cpu_ns(tool.pid) - before_ns, time.monotonic_ns() - began_ns
            memory = read_memory(tool.pid)
        return cpu_ns, Agent(
            attach_ns=tool.attach_ns,
            attach_cpu_ns=attach_cpu_ns,
            cpu_ns=spent_ns,
            wall_ns=wall_ns,
            resident_bytes=memory.resident_bytes,
            proportional_bytes=memory.proportional_bytes,
            private_bytes=memory.private_bytes,
            seen=condition.count(figures or tool.output),
        )

    def _do_pieces(self, workload: Workload) -> tuple[int, ...]:
        return tuple(int(workload.run()["cpu_ns"]) for _ in range(self.pieces))


def rotated(conditions: Sequence[Condition], turn: int) -> list[Condition]:
    """Return the conditions from another one on each turn, in their order."""
    start = turn % len(conditions)
    return [*conditions[start:], *conditions[:start]]


def _check_seen(work: Work, condition: Condition, seen: int, units: int) -> None:
    """Raise ToolFailed if the tool cannot have traced the work that it is measured with."""
    if condition.sees_every_take:
        least = units if work.takes_once_a_unit else 1
    else:
        least = 1 if work.has_waits else 0
    if seen < least:
        raise ToolFailed(f"{condition.title} saw {seen} events of at least {least} in {work.title}")
