"""Measurements as a bench might have made them, with known answers."""

from collections.abc import Sequence

from bench.conditions import AGAIN, AUTO, BASELINE, CONDITIONS, CONTENTION, Condition
from bench.measurement import (
    Agent,
    Attach,
    Crowd,
    Failure,
    Machine,
    Piece,
    Results,
    Run,
    Scrape,
    SelfReport,
    Start,
)
from bench.works import WORKS, Work

__all__ = ["CROWD", "agent", "results", "round_of", "run"]

_UNITS = 1_000
_MS = 1_000_000

CROWD = Crowd(
    key="busy",
    condition=AUTO[1].key,
    processes=20,
    threads=2,
    traced=20,
    attach_ns=1_500 * _MS,
    detach_ns=700 * _MS,
    cpu_ns=120 * _MS,
    wall_ns=30_000 * _MS,
    threads_cpu_ns=(("memory-reader", 15 * _MS), ("scan", 6 * _MS), ("tick", 60 * _MS)),
    targets_cpu_ns=15_000 * _MS,
    resident_bytes=40_000_000,
    proportional_bytes=30_000_000,
    private_bytes=25_000_000,
    scrapes=(Scrape(14 * _MS, 275_000),),
    waits=3_189,
    holds=51_000,
    lost=(("began_unseen", 3),),
    ended_well=20,
)


def agent(overhead_ns: int | None = None, *, seen: int = 1) -> Agent:
    """Return a small agent that says it has cost *overhead_ns*."""
    return Agent(
        attach_ns=700 * _MS,
        attach_cpu_ns=600 * _MS,
        cpu_ns=10 * _MS,
        wall_ns=1_000 * _MS,
        resident_bytes=30_000_000,
        proportional_bytes=20_000_000,
        private_bytes=19_000_000,
        seen=seen,
        report=SelfReport(overhead_ns, 50 * _MS, 1_000 * _MS, 77),
    )


def run(
    work: Work,
    condition: Condition,
    *cpu_ms: int,
    turn: int = 0,
    number: int = 0,
    agent: Agent | None = None,
) -> Run:
    """Return a run with one piece for each of *cpu_ms*."""
    pieces = tuple(Piece(each * _MS, 10 * _MS, 20 * _MS) for each in cpu_ms)
    return Run(number, work.key, condition.key, turn, _UNITS, pieces, 5 * _UNITS, agent)


def round_of(
    work: Work,
    costs: Sequence[tuple[Condition, float]],
    *,
    number: int = 0,
    tells: float | None = 1.0,
) -> list[Run]:
    """Return a round in which each condition takes its cost times a second.

    What gilscope says that it costs is *tells* times the truth; None: it says nothing.
    """
    runs = [run(work, BASELINE, 500, 500, number=number)]
    for place, (condition, cost) in enumerate(costs):
        cpu_ms = round(500 * cost)
        told_ns = None if tells is None else round(tells * 2 * (cpu_ms - 500)) * _MS
        traced = agent(told_ns if condition.serves else None) if condition.command else None
        turn = 2 * place + 1
        runs.append(run(work, condition, cpu_ms, cpu_ms, turn=turn, number=number, agent=traced))
        runs.append(run(work, BASELINE, 500, 500, turn=turn + 1, number=number))
    return runs


def results(
    runs: Sequence[Run] | None = None,
    *,
    crowds: Sequence[Crowd] = (CROWD,),
    failures: Sequence[Failure] = (),
    left_out: Sequence[tuple[str, str]] = (),
) -> Results:
    """Return results; without *runs*, of every workload under every condition at no cost."""
    if runs is None:
        free = [(condition, 1.0) for condition in CONDITIONS if condition is not BASELINE]
        runs = [
            each
            for work in WORKS
            for each in round_of(work, [pair for pair in free if work.is_for(pair[0])])
        ]
    return Results(
        machine=Machine("a CPU", 2, True, 1_000_000_000, "Linux", "Debian", (("BCC", "0.26"),)),
        date="2026-01-01 00:00 UTC",
        command="python bench/overhead.py",
        took_s=90.0,
        rounds=1,
        is_quick=False,
        load_before=0.1,
        stolen=0.0,
        interpreter="pyenv-3.12",
        runs=tuple(runs),
        failures=tuple(failures),
        attaches=tuple(Attach("pyenv-3.12", is_cold, 700 * _MS) for is_cold in (True, False)),
        starts=(Start(16 * _MS, 310 * _MS),),
        crowds=tuple(crowds),
        left_out=tuple(left_out),
    )


def quiet_round(work: Work, number: int = 0) -> list[Run]:
    """Return a round of *work* in which contention mode costs nothing and nothing is noisy."""
    return round_of(work, [(AGAIN, 1.0), (CONTENTION, 1.0)], number=number)
