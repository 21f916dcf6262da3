"""How bad waiting is, by the thresholds of the alerts."""

import pytest

from gilscope.verdict.degree import (
    CONVOYS_A_SECOND,
    HOG_SHARE,
    LOST_RATIO,
    SEVERE_THREADS,
    Degree,
    degree_of_waiting,
)
from support.paths import ROOT


@pytest.mark.parametrize(
    ("waiting", "held", "degree"),
    [
        (0.0, None, Degree.NONE),
        (0.019, 0.001, Degree.NONE),
        (0.02, 1.0, Degree.MILD),
        (0.25, 0.1, Degree.MILD),
        (0.26, 0.25, Degree.SEVERE),
        (0.9, 1.0, Degree.MILD),
        (0.9, None, Degree.MILD),
        (1.1, 1.0, Degree.SEVERE),
        (1.1, None, Degree.SEVERE),
    ],
)
def test_degree_of_waiting(waiting: float, held: float | None, degree: Degree) -> None:
    """
    Severe is what raises the alert on contention: enough is lost, and more than is used.
    """
    assert degree is degree_of_waiting(waiting, held)


def test_thresholds_are_those_of_the_alerts() -> None:
    """
    Whoever is told that it is severe gets an alert of it, too.
    """
    rules = (ROOT / "dashboards/rules/gil.yml").read_text()
    expressions = [
        f"process:gilscope_gil_lost:ratio_rate5m > {LOST_RATIO:g}",
        f"process:gilscope_gil_thread_wait_seconds:rate5m > {SEVERE_THREADS:g}",
        f"process:gilscope_gil_convoy_waits:rate5m > {CONVOYS_A_SECOND:g}",
        f"process:gilscope_gil_slow_drop_seconds:rate5m > {HOG_SHARE:g}",
    ]

    assert expressions == [expression for expression in expressions if expression in rules]
