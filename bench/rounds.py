"""Runs every workload under every condition, in turns, round after round."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.conditions import BASELINE, Condition
from bench.footprint import read_family_cpu_ns, read_memory, read_switches
from bench.measurement import Agent, Failure, Piece, Run
from bench.served import Figures, read_figures, self_report
from bench.tool import Tool, ToolFailed, tool_started
from bench.works import IDLE, Work

from accuracy.truth import Workload, started
from support.interpreters.interpreter import Interpreter

__all__ = ["Bench", "command_for", "rotated"]

_LEAST_PIECES = 2
_NS_PER_S = 1_000_000_000


class _Done(NamedTuple):
    """The work of one run."""

    pieces: tuple[Piece, ...]
    switches: int
    """Of the target's threads, in all of them together."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured with, and how much."""

    interpreter: Interpreter
    environment: Mapping[str, str]
    """Of the tools."""
    rounds: int
    divisor: int = 1
    """By which the work of a piece and the length of a run are reduced."""

    def find_usable(
        self, conditions: Sequence[Condition]
    ) -> tuple[list[Condition], dict[str, str]]:
        """Return the conditions that can be measured here, and by key why the others cannot."""
        usable: list[Condition] = []
        reasons: dict[str, str] = {}
        with started(self.interpreter.argv, *IDLE) as workload:
            for condition in conditions:
                try:
                    self._try(condition, workload.pid)
                except (ToolFailed, OSError) as error:
                    reasons[condition.key] = str(error)
                else:
                    usable.append(condition)
        return usable, reasons

    def run(
        self, works: Sequence[Work], conditions: Sequence[Condition]
    ) -> Iterator[Run | Failure]:
        """Yield each run as it ends, and each that failed; raises WorkloadFailed.

        One process does the work of one round under all conditions, and before and behind each of
        them under none, so that nothing but the condition differs between the figures that are
        divided by each other, and they are seconds apart.
        """
        for number in range(self.rounds):
            for work in works:
                usable = [each for each in conditions if work.is_for(each)]
                units = str(work.units // self.divisor)
                with started(self.interpreter.argv, work.script, work.option, units) as workload:
                    yield self._run_once(number, work, BASELINE, 0, workload)
                    for place, condition in enumerate(rotated(usable, number)):
                        turn = 2 * place + 1
                        try:
                            yield self._run_once(number, work, condition, turn, workload)
                        except ToolFailed as error:
                            yield Failure(number, work.key, condition.key, str(error))
                        yield self._run_once(number, work, BASELINE, turn + 1, workload)
                    workload.finish()

    def _try(self, condition: Condition, pid: int) -> None:
        if condition.command is not None:
            command = command_for(condition, pid, self.interpreter)
            with tool_started(command, condition.marker, self.environment):
                pass

    def _run_once(
        self, number: int, work: Work, condition: Condition, turn: int, workload: Workload
    ) -> Run:
        units = int(workload.ready["units"])
        seconds = work.between_s if condition is BASELINE else work.seconds(condition)
        seconds /= self.divisor
        if condition.command is None:
            done, agent = _do_pieces(workload, seconds), None
        else:
            done, agent = self._run_traced(condition, workload, seconds)
            _check_seen(work, condition, agent.seen, units * len(done.pieces))
        return Run(number, work.key, condition.key, turn, units, done.pieces, done.switches, agent)

    def _run_traced(
        self, condition: Condition, workload: Workload, seconds: float
    ) -> tuple[_Done, Agent]:
        command = command_for(condition, workload.pid, self.interpreter)
        with tool_started(command, condition.marker, self.environment) as tool:
            attach_cpu_ns, began_ns = read_family_cpu_ns(tool.pid), time.monotonic_ns()
            before = _figures(condition, tool)
            done = _do_pieces(workload, seconds)
            after = _figures(condition, tool)
            spent_ns = read_family_cpu_ns(tool.pid) - attach_cpu_ns
            wall_ns = time.monotonic_ns() - began_ns
            memory = read_memory(tool.pid)
        if condition.printed is not None:
            seen, report = condition.printed(tool.output), None
        else:
            seen, report = after.waits - before.waits, self_report(before, after)
        return done, Agent(
            attach_ns=tool.attach_ns,
            attach_cpu_ns=attach_cpu_ns,
            cpu_ns=spent_ns,
            wall_ns=wall_ns,
            resident_bytes=memory.resident_bytes,
            proportional_bytes=memory.proportional_bytes,
            private_bytes=memory.private_bytes,
            seen=seen,
            report=report,
        )


def command_for(condition: Condition, pid: int, interpreter: Interpreter) -> list[str]:
    """Return the command of *condition* for one process; raises ToolFailed."""
    if condition.command is None:
        raise ToolFailed("nothing is started for it")
    return condition.command(pid, interpreter.elf)


def rotated(conditions: Sequence[Condition], turn: int) -> list[Condition]:
    """Return the conditions from another one on each turn, in their order."""
    start = turn % len(conditions)
    return [*conditions[start:], *conditions[:start]]


def _figures(condition: Condition, tool: Tool) -> Figures:
    return read_figures(tool) if condition.serves else Figures("")


def _do_pieces(workload: Workload, seconds: float) -> _Done:
    """Return what so many pieces of work took as last for *seconds*."""
    enough_ns = time.monotonic_ns() + round(seconds * _NS_PER_S)
    pieces: list[Piece] = []
    before = read_switches(workload.pid)
    while len(pieces) < _LEAST_PIECES or time.monotonic_ns() < enough_ns:
        done = workload.run()
        pieces.append(Piece(int(done["cpu_ns"]), done.get("p50_ns", 0), done.get("p99_ns", 0)))
    return _Done(tuple(pieces), read_switches(workload.pid) - before)


def _check_seen(work: Work, condition: Condition, seen: int, units: int) -> None:
    """Raise ToolFailed if the tool cannot have traced the work that it is measured with."""
    if condition.sees_every_take:
        least = units if work.takes_once_a_unit else 1
    elif condition.serves:
        least = 1 if work.has_waits else 0
    else:
        least = 1
    if seen < least:
        raise ToolFailed(f"saw {seen} {condition.counts} of at least {least}")
