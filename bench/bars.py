"""Holds what was measured against what gilscope is to reach."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.conditions import AUTO, CONTENTION, FULL, GILSCOPE, THREE_PROBES, Condition
from bench.measurement import Crowd, Results
from bench.ratios import added_ns_per_unit, noise, overheads, ratios, spread, stands_out
from bench.scale import BUSY
from bench.works import TIGHT, WORKS

__all__ = ["MOST_RATIO", "Bar", "attach_seconds", "judge"]

MOST_RATIO = 1.01
_MOST_FACTOR = 1.5
_MOST_WARM_S = 0.25
_MOST_COLD_S = 2.0
_MOST_PRIVATE_MB = 30.0
_MOST_RESIDENT_MB = 80.0
_MOST_CPU_PER_CENT = 0.4
_NS_PER_S = 1_000_000_000
_BYTES_PER_MB = 1_000_000
_PER_CENT = 100
# Events that began before the probes were there cannot be seen in full by anybody.
_NOT_LOST = "began_unseen"


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure, its bar, and whether it was reached."""

    figure: str
    bar: str
    measured: str = "not measured"
    is_met: bool | None = None
    """None: it was not measured."""


def attach_seconds(results: Results, interpreter: str, *, is_cold: bool) -> list[float]:
    """Return how long each attach to *interpreter* took."""
    return [
        each.attach_ns / _NS_PER_S
        for each in results.attaches
        if (each.interpreter, each.is_cold) == (interpreter, is_cold)
    ]


def judge(results: Results) -> list[Bar]:
    """Return every bar: ratios and times by their medians, memory by its maximum."""
    return [
        _contention_bar(results),
        *(_auto_bar(results, condition) for condition in AUTO),
        _full_bar(results),
        *_report_bars(results),
        _attach_bar(results, _MOST_WARM_S, is_cold=False),
        _attach_bar(results, _MOST_COLD_S, is_cold=True),
        *_memory_bars("one target", _agents(results)),
        *_crowd_bars(results.crowds),
        _failure_bar(results),
    ]


def _contention_bar(results: Results) -> Bar:
    figure = "target's CPU time in the tight loop, contention mode, median ratio"
    bar = f"at most {MOST_RATIO}"
    found = ratios(results.runs, TIGHT, CONTENTION)
    if not found:
        return Bar(figure, bar)
    cost = spread(found).median
    return Bar(figure, bar, f"{cost:.3f}", cost <= MOST_RATIO)


def _auto_bar(results: Results, condition: Condition) -> Bar:
    budget = condition.budget or 0.0
    figure = f"target's CPU time, {condition.title}, median ratio in the worst workload"
    bar = f"at most {1 + budget:g} + the noise floor of the workload"
    excess = [
        (spread(found).median - 1 - budget - noise(results.runs, work), work, found)
        for work in WORKS
        if (found := ratios(results.runs, work, condition))
    ]
    if not excess:
        return Bar(figure, bar)
    most, work, found = max(excess, key=lambda each: each[0])
    floor = noise(results.runs, work)
    return Bar(figure, bar, f"{spread(found).median:.3f} (*{work.title}*, {floor:.3f})", most <= 0)


def _full_bar(results: Results) -> Bar:
    figure = "added to a release and acquire in the tight loop, full mode"
    bar = "less than BCC's three probes add"
    ours = added_ns_per_unit(results.runs, TIGHT, FULL)
    theirs = added_ns_per_unit(results.runs, TIGHT, THREE_PROBES)
    if not ours or not theirs:
        return Bar(figure, bar)
    our_ns, their_ns = spread(ours).median, spread(theirs).median
    return Bar(figure, bar, f"{our_ns:.0f} ns against {their_ns:.0f} ns", our_ns < their_ns)


def _report_bars(results: Results) -> Iterator[Bar]:
    """Yield a bar for each self-report that can be held against something."""
    for condition in GILSCOPE:
        for work in WORKS:
            must = condition is FULL and work is TIGHT
            figure = f"self-reported by measured overhead, {condition.title}, *{work.title}*"
            bar = f"between 1 / {_MOST_FACTOR} and {_MOST_FACTOR}"
            found = overheads(results.runs, work, condition)
            if found and stands_out(results.runs, work, condition):
                measured = spread(each.measured for each in found).median
                quotient = spread(each.estimated for each in found).median / measured
                is_met = 1 / _MOST_FACTOR <= quotient <= _MOST_FACTOR
                yield Bar(figure, bar, f"{quotient:.2f}", is_met)
            elif must:
                yield Bar(figure, bar, "in the noise", is_met=False) if found else Bar(figure, bar)


def _attach_bar(results: Results, most_s: float, *, is_cold: bool) -> Bar:
    figure = f"attach, {'cold' if is_cold else 'warm'}, median for the slower interpreter"
    bar = f"at most {most_s:g} s"
    interpreters = dict.fromkeys(each.interpreter for each in results.attaches)
    medians_s = [
        spread(found).median
        for each in interpreters
        if (found := attach_seconds(results, each, is_cold=is_cold))
    ]
    if not medians_s:
        return Bar(figure, bar)
    return Bar(figure, bar, f"{max(medians_s):.2f} s", max(medians_s) <= most_s)


def _agents(results: Results) -> list[tuple[int, int]]:
    """Return private and resident memory of each gilscope that traced one workload."""
    ours = {condition.key for condition in GILSCOPE}
    return [
        (run.agent.private_bytes, run.agent.resident_bytes)
        for run in results.runs
        if run.agent and run.condition in ours
    ]


def _memory_bars(where: str, sizes: Iterable[tuple[int, int]]) -> Iterator[Bar]:
    private, resident = zip(*sizes, strict=True)
    for kind, found, most_mb in (
        ("private", private, _MOST_PRIVATE_MB),
        ("resident", resident, _MOST_RESIDENT_MB),
    ):
        measured_mb = max(found) / _BYTES_PER_MB
        yield Bar(
            f"{kind} memory of the agent while serving, {where}, maximum",
            f"at most {most_mb:.0f} MB",
            f"{measured_mb:.0f} MB",
            measured_mb <= most_mb,
        )


def _crowd_bars(crowds: Iterable[Crowd]) -> Iterator[Bar]:
    for crowd in crowds:
        where = f"{crowd.processes} {crowd.key} targets, {crowd.condition}"
        if crowd.key == BUSY.key:
            cpu = _PER_CENT * crowd.cpu_ns / crowd.wall_ns
            yield Bar(
                f"CPU of the agent, {where}",
                f"at most {_MOST_CPU_PER_CENT} % of a core",
                f"{cpu:.2f} %",
                cpu <= _MOST_CPU_PER_CENT,
            )
            yield from _memory_bars(where, [(crowd.private_bytes, crowd.resident_bytes)])
        lost = sum(count for reason, count in crowd.lost if reason != _NOT_LOST)
        is_whole = crowd.traced == crowd.ended_well == crowd.processes
        yield Bar(
            f"traced at once, lost events, targets unharmed, {where}",
            f"{crowd.processes}, 0, {crowd.processes}",
            f"{crowd.traced}, {lost}, {crowd.ended_well}",
            is_whole and not lost,
        )


def _failure_bar(results: Results) -> Bar:
    ours = {condition.key for condition in GILSCOPE}
    failed = sum(failure.condition in ours for failure in results.failures)
    return Bar("runs and attaches in which gilscope failed", "0", str(failed), not failed)
