"""Holds what was measured against what gilscope is to reach."""

from dataclasses import dataclass

from bench.conditions import BASELINE, GILSCOPE
from bench.measurement import Results
from bench.ratios import ratios, spread
from bench.works import TIGHT

__all__ = ["MOST_RATIO", "Bar", "attach_seconds", "judge"]

MOST_RATIO = 1.01
_MOST_WARM_S = 1.0
_MOST_COLD_S = 2.0
_MOST_PRIVATE_MB = 40.0
_MOST_RESIDENT_MB = 80.0
_NS_PER_S = 1_000_000_000
_BYTES_PER_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure, its bar, and whether it was reached."""

    figure: str
    bar: str
    measured: str
    is_met: bool


def attach_seconds(results: Results, interpreter: str, *, is_cold: bool) -> list[float]:
    """Return how long each attach to *interpreter* took."""
    return [
        each.attach_ns / _NS_PER_S
        for each in results.attaches
        if (each.interpreter, each.is_cold) == (interpreter, is_cold)
    ]


def judge(results: Results) -> list[Bar]:
    """Return every bar: ratios and times by their medians, memory by its maximum."""
    cost = spread(ratios(results.runs, TIGHT.key, GILSCOPE.key, BASELINE.key)).median
    agents = [run.agent for run in results.runs if run.agent and run.condition == GILSCOPE.key]
    private_mb = max(agent.private_bytes for agent in agents) / _BYTES_PER_MB
    resident_mb = max(agent.resident_bytes for agent in agents) / _BYTES_PER_MB
    return [
        Bar(
            "target's CPU time in the tight loop, contention mode, median ratio",
            f"at most {MOST_RATIO}",
            f"{cost:.3f}",
            cost <= MOST_RATIO,
        ),
        _attach_bar(results, _MOST_WARM_S, is_cold=False),
        _attach_bar(results, _MOST_COLD_S, is_cold=True),
        _memory_bar("private", private_mb, _MOST_PRIVATE_MB),
        _memory_bar("resident", resident_mb, _MOST_RESIDENT_MB),
    ]


def _attach_bar(results: Results, most_s: float, *, is_cold: bool) -> Bar:
    interpreters = dict.fromkeys(each.interpreter for each in results.attaches)
    slowest_s = max(
        spread(attach_seconds(results, each, is_cold=is_cold)).median for each in interpreters
    )
    return Bar(
        f"attach, {'cold' if is_cold else 'warm'}, median for the slower interpreter",
        f"at most {most_s:.0f} s",
        f"{slowest_s:.2f} s",
        slowest_s <= most_s,
    )


def _memory_bar(kind: str, measured_mb: float, most_mb: float) -> Bar:
    return Bar(
        f"{kind} memory of the agent while serving, maximum",
        f"at most {most_mb:.0f} MB",
        f"{measured_mb:.0f} MB",
        measured_mb <= most_mb,
    )
