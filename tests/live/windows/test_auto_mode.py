"""Auto mode as it is served: exact where it must be, and honest about what it has seen."""

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest

from accuracy.truth import Workload, exact_counts, started, thread_truths
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, Service, serving
from support.interpreters.interpreter import Interpreter
from support.interpreters.known import INTERPRETERS

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_OLD = [each for each in INTERPRETERS if "-3.6" in each.id or "-3.7" in each.id]  # type: ignore[attr-defined]
_HELD = "gilscope_gil_held_seconds_total"
_OBSERVED = "gilscope_gil_observed_seconds_total"


def _assert_runs_forward(scrapes: Sequence[Scrape]) -> None:
    """Assert that no counter falls, and that time inside or outside of windows is time passed."""
    for before, now in pairwise(scrapes):
        values = now.counters()
        for series, value in before.counters().items():
            assert value <= values[series], series
        passed_s = now.after_s - before.before_s
        for name in (_HELD, _OBSERVED):
            for window in ("full", "all"):
                gained_s = now.total(name, window=window) - before.total(name, window=window)
                assert gained_s <= passed_s, (name, window)


def _scrapes_of_a_run(service: Service, workload: Workload, seconds: float) -> list[Scrape]:
    """Return what is served meanwhile, as fast as can be, and what remains in the end."""
    workload.command()
    scrapes = [service.scrape()]
    while scrapes[-1].after_s < scrapes[0].before_s + seconds:
        scrapes.append(service.scrape())
    return scrapes


def test_waits_are_exact_with_windows_or_without() -> None:
    """
    Windows come and go; waits are counted all the time, to the last one.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        serving("-p", str(workload.pid), "--mode", "auto") as service,
    ):
        truth = exact_counts(workload.run())
        scrape = service.scrape()
        workload.finish()
    waits = "gilscope_gil_thread_waits_total"
    roles = {sample.labels["role"] for sample in scrape.samples(waits)}
    (role,) = [role for role in roles if role.startswith("waiter (")]

    assert 23 == truth.waits == scrape.total(waits, role=role)
    assert 1 == scrape.total("gilscope_probe_valid")
    assert 0 == scrape.total("gilscope_lost_events_total")


@pytest.mark.beside_others
@pytest.mark.parametrize("interpreter", _OLD)
def test_old_pythons_have_windows_too(interpreter: Interpreter) -> None:
    """
    CPython 3.6 and 3.7, whose GIL lies elsewhere: exact waits, and holds in windows.
    """
    python = interpreter.command()
    with (
        started(python, "exact_count.py") as counted,
        started(python, "held_known.py", "--seconds", "30", "--threads", "brisk") as holding,
        serving("-p", str(counted.pid), "-p", str(holding.pid), "--mode", "auto") as service,
    ):
        truth = exact_counts(counted.run())
        holding.command()
        (scrape,) = eventually(lambda: _with_holds(service))
        counted.finish()
    waits, pid = "gilscope_gil_thread_waits_total", str(counted.pid)
    roles = {sample.labels["role"] for sample in scrape.samples(waits, pid=pid)}
    (role,) = [role for role in roles if role.startswith("waiter (")]

    assert 23 == truth.waits == scrape.total(waits, pid=pid, role=role)
    assert 2 == scrape.total("gilscope_probe_valid")
    assert 0 == scrape.total("gilscope_lost_events_total", pid=pid)
    full, every = (
        scrape.total(_OBSERVED, pid=str(holding.pid), window=each) for each in ("full", "all")
    )
    assert 0 < full < every
    assert 0 < scrape.total(_HELD, pid=str(holding.pid), window="full") <= full


def test_auto_mode_is_what_serve_does_unasked() -> None:
    """
    Without --mode, windows are opened from time to time, and what they cover is a figure.
    """
    with (
        started([_PYTHON], "held_known.py", "--seconds", "30", "--threads", "brisk") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        workload.command()
        began_s = time.monotonic()
        eventually(lambda: service.scrape().total(_OBSERVED, window="full") > 0)
        (scrape,) = eventually(lambda: _with_holds(service))
        passed_s = time.monotonic() - began_s
        outcome = service.end()

    assert 0 == outcome.exit_code
    assert [
        f"INFO: traced: held_known.py, pid {workload.pid}",
        f"Serving {service.url}metrics. Ctrl-C to end.",
    ] == outcome.messages.splitlines()
    assert 0 < scrape.total(_OBSERVED, window="full") < scrape.total(_OBSERVED, window="all")
    assert scrape.total(_OBSERVED, window="all") >= passed_s - 1
    assert 0 < scrape.total(_HELD, window="full") <= scrape.total(_OBSERVED, window="full")
    assert scrape.total(_HELD, window="all") <= scrape.total(_OBSERVED, window="all")
    assert 0 < scrape.total("gilscope_target_overhead_seconds_total")
    assert 0 < scrape.total("gilscope_target_overhead_ratio") < 1


def test_stacks_of_fewer_waits_where_all_would_be_too_dear() -> None:
    """
    The waits that are left out are attributed to those that are not, and the share says so.
    """
    waited, blocked = "gilscope_gil_thread_wait_seconds_total", "gilscope_gil_blocked_seconds_total"
    with (
        started([_PYTHON], "held_known.py", "--seconds", "6", "--threads", "mixed,brisk") as load,
        serving("-p", str(load.pid), "--overhead-budget", "0.1%") as service,
    ):
        load.command()
        load.answer()
        scrape = service.scrape()
        load.finish()
    waiters = {sample.labels["waiter"] for sample in scrape.samples(blocked)}

    assert 0 < scrape.total("gilscope_gil_stack_sampling_ratio") < 1
    assert {"holder", "other"} >= {waiter.partition(" ")[0] for waiter in waiters}
    # What has found nobody yet is not told.
    assert 0.95 * scrape.total(waited) < scrape.total(blocked) <= scrape.total(waited) + 1e-6


def _with_holds(service: Service) -> list[Scrape]:
    scrape = service.scrape()
    return [scrape] if scrape.total("gilscope_gil_hold_seconds_count") else []


@pytest.mark.slow
def test_counters_run_forward_across_the_edges_of_windows() -> None:
    """
    Whenever it is scraped, before, in or after a window, no counter falls or outruns the time.
    """
    seconds = 12.0
    arguments = ["--seconds", str(seconds), "--threads", "uneven,brisk,mixed"]
    # On a slow machine the waits alone cost 1 %, which would leave nothing for windows.
    auto = ("--mode", "auto", "--overhead-budget", "2%")
    with (
        started([_PYTHON], "held_known.py", *arguments) as workload,
        serving("-p", str(workload.pid), *auto) as service,
    ):
        scrapes = _scrapes_of_a_run(service, workload, seconds)
        truths = thread_truths(workload.answer())
        # Now that no hold ends while it is read.
        last = service.scrape()
        scrapes.append(last)
    edges = sum(
        (now.total(_OBSERVED, window="full") > before.total(_OBSERVED, window="full"))
        != (later.total(_OBSERVED, window="full") > now.total(_OBSERVED, window="full"))
        for before, now, later in zip(scrapes, scrapes[1:], scrapes[2:], strict=False)
    )

    _assert_runs_forward(scrapes)
    assert 1 == last.total("gilscope_probe_valid")
    assert edges > 0
    for before, now in pairwise(scrapes):
        for sample in now.samples("gilscope_gil_thread_hold_seconds_total"):
            gained_s = sample.value - before.total(sample.name, role=sample.labels["role"])
            assert gained_s <= now.after_s - before.before_s
    assert 0 < last.total(_HELD, window="full") <= last.total(_OBSERVED, window="full")
    # Of holds too, only those that began in a window.
    counted = last.total("gilscope_gil_thread_holds_total")
    assert 0 < counted == last.total("gilscope_gil_hold_seconds_count")
    assert counted < sum(thread.holds for thread in truths)
