"""Runs the workloads with known blame, and compares what they know with what has been seen."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from accuracy.truth import Answer, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import Edge, GilObservation, Tally
from gilscope.model.stack import UNKNOWN_FRAME, Frame, Stack, StackState
from gilscope.process.attachment import Retention
from support.interpreters.known import Interpreter
from support.paths import WORKLOADS
from support.tracing.sites import shared_sites
from support.tracing.trace import command_of, looked_after, observation_of

__all__ = [
    "MOST_FRAMES",
    "Played",
    "Stage",
    "TrueEdge",
    "assert_adds_up",
    "assert_blamed",
    "known_share",
    "lines_marked",
    "lost_by",
    "stage_of",
    "told",
    "true_edges",
]

MOST_FRAMES = 32
"""As many of a stack are noted."""

_TOLERANCE = 0.01
_STALL_NS = 6_000_000
"""A busy machine may stop the workload between its clock and the wait, which then looks longer."""
_START_AND_END = 0.02
"""The share of a waiter's time in which it may wait for whoever starts or joins it."""
_ENDS_NS = 200_000
"""What may come between the two ends of a wait and the workload's clock around it."""


@dataclass(frozen=True, slots=True)
class TrueEdge:
    """The waits of one stack behind another one, by the workload's own clock."""

    waiter: Stack
    holder: Stack
    lost: Tally
    uncertain_ns: int
    """The true waiting time lies between `lost.ns` less this, and `lost.ns`."""

    def agrees_with(self, seen_ns: int, *, rivals: float = 0.0) -> bool:
        """Whether *seen_ns* is right, of which a share of *rivals* may be attributed to others."""
        slack_ns = int(self.lost.ns * _TOLERANCE) + self.lost.count * _ENDS_NS
        least_ns = int(self.lost.ns * (1 - rivals)) - self.uncertain_ns - _STALL_NS - slack_ns
        return least_ns <= seen_ns <= self.lost.ns + slack_ns


@dataclass(frozen=True, slots=True)
class Played:
    """A workload that has run through its scenarios."""

    script: Path
    truth: Mapping[str, tuple[TrueEdge, ...]] = field(repr=False)
    """By scenario."""
    seen: Mapping[str, GilObservation] = field(repr=False)
    """What had been counted when the scenario was over, with those before it."""

    @property
    def observation(self) -> GilObservation:
        """What had been counted at the end."""
        return list(self.seen.values())[-1]

    def edges_of(self, scenario: str) -> tuple[Edge, ...]:
        """Return the edges of one scenario alone."""
        scenarios = list(self.seen)
        place = scenarios.index(scenario)
        before: dict[object, Tally] = {}
        if place:
            edges = self.seen[scenarios[place - 1]].totals.edges
            before = {(edge.kind, edge.waiter, edge.holder): edge.lost for edge in edges}
        grown = []
        for edge in self.seen[scenario].totals.edges:
            old = before.get((edge.kind, edge.waiter, edge.holder), Tally())
            lost = Tally(edge.lost.ns - old.ns, edge.lost.count - old.count)
            if lost != Tally():
                grown.append(Edge(edge.kind, edge.waiter, edge.holder, lost))
        return tuple(grown)


class Stage:
    """One interpreter, and the workloads that have run on it: each runs once."""

    def __init__(self, interpreter: Interpreter, tracer: GilAccount) -> None:
        self.interpreter = interpreter
        self._tracer = tracer
        self._played: dict[str, Played] = {}

    def played(self, script: str) -> Played:
        """Return what a workload knows and what has been seen of it."""
        if script not in self._played:
            self._played[script] = _play(self.interpreter, self._tracer, script)
        return self._played[script]

    def forget(self) -> None:
        """Let each workload run again when it is asked for."""
        self._played.clear()


@contextmanager
def stage_of(interpreter: Interpreter, probe: GilProbe) -> Iterator[Stage]:
    """Trace what runs on the stage of *interpreter*."""
    tracer = GilAccount(probe, shared_sites())
    try:
        yield Stage(interpreter, tracer)
    finally:
        tracer.close()
        tracer.drop_ended(Retention(0), set())


def _play(interpreter: Interpreter, tracer: GilAccount, script: str) -> Played:
    truth: dict[str, tuple[TrueEdge, ...]] = {}
    seen: dict[str, GilObservation] = {}
    with started(command_of(interpreter), script) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            for scenario in workload.ready.get("scenarios", [""]):
                workload.command(scenario)
                truth[scenario] = true_edges(workload.answer())
                workload.await_rest()
                seen[scenario] = observation_of(tracer, workload.pid)
        workload.finish()
    return Played(WORKLOADS / script, truth, seen)


def true_edges(answer: Answer) -> tuple[TrueEdge, ...]:
    """Return what the answer of a workload says of the waits of one scenario."""
    return tuple(
        TrueEdge(
            _true_stack(edge["waiter"]),
            _true_stack(edge["holder"]),
            Tally(edge["wait_ns"], edge["waits"]),
            edge["uncertain_ns"],
        )
        for edge in answer.get("edges", [])
    )


# What holds for every observation.


def assert_adds_up(observation: GilObservation) -> None:
    """Assert that nothing went wrong, and that every wait of every kind has its two ends."""
    lost: dict[object, int] = defaultdict(int)
    blamed: dict[object, int] = defaultdict(int)
    for thread in observation.totals.threads:
        for kind, tally in thread.lost.items():
            lost[kind] += tally.ns
    for edge in observation.totals.edges:
        blamed[edge.kind] += edge.lost.ns

    assert "" == observation.invalid, observation.invalid
    assert {kind: ns for kind, ns in lost.items() if ns} == blamed, (lost, blamed)


def known_share(edges: Iterable[Edge]) -> float:
    """Return the share of the waiting time of which both ends are known."""
    everything = list(edges)
    known = [edge for edge in everything if _is_known(edge.waiter) and _is_known(edge.holder)]
    return lost_by(known).ns / max(1, lost_by(everything).ns)


def lost_by(edges: Iterable[Edge]) -> Tally:
    """Return what the edges add up to."""
    return sum((edge.lost for edge in edges), Tally())


# Where both ends are known to the letter.


def assert_blamed(workload: Played, scenario: str, *, rivals: float = 0.0) -> None:
    """Assert that the edges of a scenario are exactly those that it knows.

    Its waiters may have spent a share of *rivals* of their time behind others, besides what they
    wait where threads start and end.
    """
    truth = workload.truth[scenario]
    seen = workload.edges_of(scenario)
    assert truth

    for waiter in {edge.waiter for edge in truth}:
        theirs = [edge for edge in seen if edge.waiter == waiter]
        holders = {edge.holder for edge in truth if edge.waiter == waiter}
        others = [edge for edge in theirs if edge.holder not in holders]
        most_ns = (rivals + _START_AND_END) * lost_by(theirs).ns
        assert lost_by(others).ns <= most_ns, told(others)
    for edge in truth:
        pair = [one for one in seen if (one.waiter, one.holder) == (edge.waiter, edge.holder)]
        lost = lost_by(pair)
        assert edge.lost.count == lost.count, (edge, lost, told(seen))
        assert edge.agrees_with(lost.ns, rivals=rivals), (edge, lost)


def told(edges: Iterable[Edge]) -> str:
    """Return the edges in a form in which somebody can find out what is wrong with them."""
    return "\n".join(
        f"{edge.kind.value} {edge.lost} {_sites(edge.waiter)} behind {_sites(edge.holder)}"
        for edge in edges
    )


def _sites(stack: Stack) -> str:
    sites = [f"{frame.function}:{frame.line}" for frame in stack.frames]
    return f"{stack.state.value} {' < '.join(sites)}"


def lines_marked(script: Path, words: str) -> set[int]:
    """Return the numbers of the lines with a comment that ends in *words*."""
    lines = script.read_text().splitlines()
    return {at for at, line in enumerate(lines, start=1) if re.search(f"# .*{words}$", line)}


def _is_known(stack: Stack) -> bool:
    if UNKNOWN_FRAME in stack.frames:
        return False
    return bool(stack.frames) or stack.state is StackState.NO_PYTHON


def _true_stack(frames: list[list[object]]) -> Stack:
    if not frames:
        return Stack((), StackState.NO_PYTHON)
    state = StackState.CUT if len(frames) > MOST_FRAMES else StackState.WHOLE
    return Stack(tuple(_frame(*frame) for frame in frames[:MOST_FRAMES]), state)


def _frame(function: object, file: object, first_line: object, line: object) -> Frame:
    assert isinstance(function, str)
    assert isinstance(file, str)
    assert isinstance(first_line, int)
    assert isinstance(line, int)
    return Frame(function, file, first_line, line)
