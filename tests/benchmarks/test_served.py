"""Figures of a serving gilscope: what grew between two scrapes."""

from bench.measurement import SelfReport
from bench.served import Figures, self_report

_PAGE = """\
# TYPE gilscope_gil_observed_seconds_total counter
gilscope_gil_observed_seconds_total{{pid="7",window="full"}} {observed}
gilscope_gil_observed_seconds_total{{pid="7",window="all"}} {elapsed}
# TYPE gilscope_gil_hold_seconds histogram
gilscope_gil_hold_seconds_bucket{{pid="7",le="+Inf"}} {holds}
gilscope_gil_hold_seconds_count{{pid="7"}} {holds}
gilscope_gil_hold_seconds_sum{{pid="7"}} 1.5
"""
_OVERHEAD = """\
# TYPE gilscope_target_overhead_seconds_total counter
gilscope_target_overhead_seconds_total{{pid="7"}} {overhead}
"""


def _figures(text: str, **values: float) -> Figures:
    return Figures(text.format(**values))


def test_growth_is_reported() -> None:
    """
    What was there before the run is not of the run.
    """
    text = _PAGE + _OVERHEAD
    before = _figures(text, observed=0.5, elapsed=1, holds=10, overhead=0.25)
    after = _figures(text, observed=0.75, elapsed=11, holds=35, overhead=0.5)

    expected = SelfReport(250_000_000, 250_000_000, 10_000_000_000, 25)
    assert expected == self_report(before, after)


def test_no_estimate_is_none() -> None:
    """
    An agent that estimates nothing does not claim to cost nothing.
    """
    same = _figures(_PAGE, observed=0, elapsed=0, holds=0)

    assert self_report(same, same).overhead_ns is None
