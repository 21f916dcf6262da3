"""Waits in windows, against an agent that sees them all, in a process where all cost too much."""

import contextlib
import time

import pytest

from accuracy.truth import started
from gilscope.process.cpu_time import process_cpu_ns
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, Service, serving

pytestmark = [pytest.mark.live, pytest.mark.slow]

_PYTHON = "/usr/bin/python3.11"
_S = 45
_SETTLED_S = 120
"""Within which the share of the time that windows cover has been found, and there were some."""
_ERROR = "gilscope_gil_wait_error_ratio"
_OBSERVED = "gilscope_gil_observed_seconds_total"
_WINDOW_S = 0.5
_BUDGET = 0.02
"""By which windows cover a third of the time: enough of them in less than a minute."""


def _growth(before: Scrape, after: Scrape, name: str, **labels: str) -> float:
    return after.total(name, **labels) - before.total(name, **labels)


def _lost(scrape: Scrape) -> dict[str, float]:
    lost = scrape.samples("gilscope_lost_events_total")
    found = {each.labels["reason"]: each.value for each in lost}
    return {reason: count for reason, count in found.items() if not reason.startswith("stack_")}


def _at_the_end_of_a_window(auto: Service, exact: Service) -> tuple[Scrape, Scrape]:
    """Return what both tell just after a window has begun and ended: figures grow with windows."""

    def covered_s() -> float:
        return auto.scrape().total(_OBSERVED, window="waits")

    before_s = covered_s()
    eventually(lambda: covered_s() > before_s)
    while (now_s := covered_s()) > before_s:
        before_s = now_s
    return auto.scrape(), exact.scrape()


def test_waits_are_within_the_error_that_is_told_and_the_budget() -> None:
    """
    Number, time, and time by who was waited for, to twice the error that is told and a window.
    """
    with contextlib.ExitStack() as stack:
        workload = stack.enter_context(started([_PYTHON], "fight.py"))
        options = ("-p", str(workload.pid))
        auto = stack.enter_context(
            serving(*options, "--mode", "auto", "--overhead-budget", f"{100 * _BUDGET:g}%")
        )
        exact = stack.enter_context(serving(*options, "--mode", "contention"))
        # By then there were eight windows under one share.
        eventually(lambda: auto.scrape().samples(_ERROR), within_s=_SETTLED_S)
        began = _at_the_end_of_a_window(auto, exact)
        began_cpu_ns, began_s = process_cpu_ns(workload.pid), time.monotonic()
        eventually(lambda: time.monotonic() > began_s + _S, within_s=2 * _S)
        ended = _at_the_end_of_a_window(auto, exact)
        used_s = ((process_cpu_ns(workload.pid) or 0) - (began_cpu_ns or 0)) / 1e9

    covered_s, passed_s = (
        _growth(began[0], ended[0], _OBSERVED, window=each) for each in ("waits", "all")
    )
    error = ended[0].total(_ERROR)
    bound = 2 * error + _WINDOW_S / covered_s
    assert 0.02 < covered_s / passed_s < 0.55
    assert 0 < error < 0.1
    assert bound < 0.2
    for name in (
        "gilscope_gil_thread_waits_total",
        "gilscope_gil_thread_wait_seconds_total",
        "gilscope_gil_forced_switches_total",
        "gilscope_gil_blocked_seconds_total",
    ):
        estimate, truth = (_growth(*pair, name) for pair in zip(began, ended, strict=True))
        assert truth * (1 - bound) < estimate < truth * (1 + bound), name
    assert _growth(began[0], ended[0], "gilscope_target_overhead_seconds_total") < (
        1.3 * _BUDGET * used_s
    )
    # Some waits had begun when it was attached.
    assert _lost(began[0]) == _lost(ended[0])
    assert 1 == ended[0].total("gilscope_probe_valid")
