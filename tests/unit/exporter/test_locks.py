"""From observations of locks to families."""

from dataclasses import replace

from gilscope.exporter.collector import AgentCollector
from gilscope.locks.abi import LockLoss
from gilscope.model.locks import LockObservation
from support.recordings.gil import full_mode
from support.recordings.locks import lock_recording
from support.reports.scraped import Fixed, Scrape, read

_SEEN = lock_recording().observation


def _scrape(*locks: LockObservation) -> Scrape:
    return read(AgentCollector(Fixed(locks=locks).source))


def test_time_is_told_by_what_was_waited_for() -> None:
    """
    Each kind of lock has a series from the start; what a thread was idle has one of its own.
    """
    figures, name = _scrape(_SEEN), "gilscope_lock_wait_seconds_total"

    assert 0.03 == figures.of_process(name, kind="object")
    assert 0.02 == figures.of_process(name, kind="lock")
    assert 0 == figures.of_process(name, kind="world_stop")
    assert figures.of_process(name, kind="idle") is None
    assert 1 == figures.of_process("gilscope_lock_idle_seconds_total")
    assert 2 == figures.of_process("gilscope_lock_waits_total", kind="object")


def test_stops_of_the_world_are_told_by_cause() -> None:
    """
    How many, until all had stopped, and how long it stood then; 0 from the start.
    """
    figures, name = _scrape(_SEEN), "gilscope_lock_world_{}_total"
    totals = replace(_SEEN.totals, stops=()) if _SEEN.totals else None
    nothing = _scrape(replace(_SEEN, totals=totals))

    for cause, stops, stopping_s, stopped_s in (("gc", 5, 0.002, 0.008), ("other", 1, 0, 0.002)):
        assert stops == figures.of_process(name.format("stops"), cause=cause)
        assert stopping_s == figures.of_process(name.format("stopping_seconds"), cause=cause)
        assert stopped_s == figures.of_process(name.format("stopped_seconds"), cause=cause)
        assert 0 == nothing.of_process(name.format("stops"), cause=cause)


def test_what_it_cost_and_what_was_lost_is_told() -> None:
    """
    Apart from what tracing the GIL costs.
    """
    figures = _scrape(_SEEN)

    assert 1 == figures.of_process("gilscope_lock_probe_valid")
    assert 20 == figures.of_process("gilscope_lock_traps_total")
    assert 0.00006 == figures.of_process("gilscope_lock_overhead_seconds_total")
    assert 0.001 == figures.of_process("gilscope_lock_overhead_ratio")
    assert 1 == figures.of_process("gilscope_lock_lost_events_total", reason="began_unseen")
    assert figures.of_process("gilscope_target_traps_total") is None


def test_every_reason_has_a_series_from_the_start() -> None:
    """
    So that the first loss is a growth, too.
    """
    lost = _scrape(_SEEN).samples("gilscope_lock_lost_events_total")

    reasons = {loss.value for loss in LockLoss if loss is not LockLoss.SPAN}
    assert reasons == {each.labels["reason"] for each in lost}
    assert 1 == sum(each.value for each in lost)


def test_coverage_is_what_to_divide_by() -> None:
    """
    Half a second of a second.
    """
    figures = _scrape(lock_recording(observed_ns=500_000_000).observation)

    assert 0.5 == figures.of_process("gilscope_lock_observed_seconds_total", window="full")
    assert 1 == figures.of_process("gilscope_lock_observed_seconds_total", window="all")


def test_figures_that_cannot_be_trusted_are_left_out() -> None:
    """
    Nor is anything said of a Python whose locks are not traced.
    """
    figures = _scrape(replace(_SEEN, invalid="its probe has gone"))
    untraced = _scrape(lock_recording(invalid="too old", has_totals=False).observation)

    assert 0 == figures.of_process("gilscope_lock_probe_valid")
    assert figures.of_process("gilscope_lock_idle_seconds_total") is None
    assert untraced.of_process("gilscope_lock_probe_valid") is None


def test_locks_beside_a_gil_are_of_the_same_process() -> None:
    """
    It is one target, whatever is measured in it, and invalid if any of that is.
    """
    gil = full_mode().observation
    process = replace(_SEEN.process, pid=gil.process.pid)
    whole = read(AgentCollector(Fixed([gil], locks=[replace(_SEEN, process=process)]).source))
    broken = replace(_SEEN, process=process, invalid="its probe has gone")
    half = read(AgentCollector(Fixed([gil], locks=[broken]).source))

    assert 1 == whole.value("gilscope_targets", state="traced")
    assert 0 == half.value("gilscope_targets", state="traced")
    assert 1 == half.value("gilscope_targets", state="invalid")


def test_a_python_that_is_too_old_for_locks_is_traced_for_its_gil() -> None:
    """
    Nothing is invalid.
    """
    refused = lock_recording(invalid="too old", has_totals=False).observation
    figures = read(AgentCollector(Fixed([full_mode().observation], locks=[refused]).source))

    assert 1 == figures.value("gilscope_targets", state="traced")
    assert 0 == figures.value("gilscope_targets", state="invalid")


def test_places_have_series_with_what_they_lose_from_then_on() -> None:
    """
    What they had lost before is under other, and all together is what was lost.
    """
    collector = AgentCollector(Fixed(locks=[_SEEN]).source)
    figures, name = read(collector), "gilscope_lock_blocked_seconds_total"
    labels = {"waiter": "append (app.py:12)", "releaser": "sort (app.py:33)"}

    assert 0 == figures.of_process(name, **labels, kind="object", type="list")
    assert 0.03 == figures.of_process(
        name, waiter="other", releaser="other", type="other", kind="object"
    )
    assert abs(figures.total(name) - 0.05) < 1e-9
    assert 4 == figures.total("gilscope_lock_blocked_total")
