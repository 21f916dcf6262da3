"""Queries that the generator makes, and those that it refuses to make."""

from collections.abc import Callable

import pytest
from dashboards.generator.queries import Query, Scope

from gilscope.metrics import table as metrics

_CHOSEN = (
    'cluster=~"$cluster", namespace=~"$namespace", pod=~"$pod", job=~"$job", instance=~"$instance"'
)
_SERIES = Scope()


def test_only_what_is_chosen_is_read() -> None:
    """
    Variables limit the series whose family has such a label.
    """
    scope = Scope(("process", "pid"))
    of_process = scope.gauge(metrics.GIL_LONGEST_WAIT, "process").expr
    of_agent = scope.gauge(metrics.TARGETS, state="invalid|refused").expr

    assert (
        "max by (process) (gilscope_gil_longest_wait_seconds"
        f'{{{_CHOSEN}, process=~"$process", pid=~"$pid"}})'
    ) == of_process
    assert f'max (gilscope_targets{{{_CHOSEN}, state=~"invalid|refused"}})' == of_agent


def test_quotient_knows_all_that_it_reads() -> None:
    """
    A query that is divided by another explains the families of both, each once.
    """
    waits = Query("a", (metrics.GIL_WAIT, metrics.GIL_HOLD))
    quotient = waits.per(Query("b", (metrics.GIL_OBSERVED, metrics.GIL_WAIT)), "pid")

    assert "a\n/ on (pid) group_left ()\nb" == quotient.expr
    assert (metrics.GIL_WAIT, metrics.GIL_HOLD, metrics.GIL_OBSERVED) == quotient.families


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: _SERIES.rate(metrics.GIL_LONGEST_WAIT), "is a gauge, not a counter"),
        (lambda: _SERIES.gauge(metrics.GIL_HELD), "is a counter, not a gauge"),
        (lambda: _SERIES.quantile(0.5, metrics.GIL_HELD), "is a counter, not a histogram"),
        (lambda: _SERIES.rate(metrics.GIL_HELD, "role"), "has no label role"),
        (lambda: _SERIES.rate(metrics.GIL_HELD, role="x"), "has no label role"),
    ],
)
def test_what_cannot_be_asked_is_refused(ask: Callable[[], Query], words: str) -> None:
    """
    No query is made of a metric of another type, or with a label that it does not have.
    """
    with pytest.raises(ValueError, match=words):
        ask()
