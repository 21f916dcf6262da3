"""From observations to families about traced processes."""

from dataclasses import replace

import pytest

from gilscope.model.gil import HoldTotals, Tally, TracingCost
from gilscope.model.kinds import Kind, Mode
from support.recordings.gil import (
    MS,
    PROCESS,
    convoy,
    full_mode,
    gil,
    histogram,
    observation,
    thread,
    with_traces,
)
from support.reports.scraped import scrape

_HOLD_SERIES = {
    "gilscope_gil_hold_seconds_count",
    "gilscope_gil_longest_hold_seconds",
    "gilscope_gil_switch_latency_seconds_count",
    "gilscope_gil_thread_hold_seconds_total",
    "gilscope_gil_thread_holds_total",
}


def test_waiting_time_is_summed_by_role() -> None:
    """
    Two threads of one role are one series, in seconds.
    """
    figures = scrape(convoy().observation)

    role = "crunch (app.py:2)"
    assert 0.41 == figures.of_process("gilscope_gil_thread_wait_seconds_total", role=role)
    assert 110 == figures.of_process("gilscope_gil_thread_waits_total", role=role)
    assert 1 == figures.of_process("gilscope_gil_waiting_threads")
    assert 0.003 == figures.of_process("gilscope_gil_longest_wait_seconds")


def test_held_time_is_summed_by_role() -> None:
    """
    Inside windows: time with the hold in flight, number without it.
    """
    figures = scrape(full_mode().observation)

    role = "crunch (app.py:2)"
    assert 1.75 == figures.of_process("gilscope_gil_thread_hold_seconds_total", role=role)
    assert 350 == figures.of_process("gilscope_gil_thread_holds_total", role=role)


def test_holds_and_switches_are_histograms_of_the_interpreter() -> None:
    """
    475 finished holds, 235 switches of 12 us.
    """
    figures = scrape(full_mode().observation)

    assert 475 == figures.of_process("gilscope_gil_hold_seconds_count", interpreter="0")
    assert 1.7969998 == figures.of_process("gilscope_gil_hold_seconds_sum", interpreter="0")
    assert [235, 0] == [
        figures.of_process(f"gilscope_gil_{name}_seconds_bucket", interpreter="0", le="1.6384e-05")
        for name in ("switch_latency", "hold")
    ]
    assert 0.003 == figures.of_process("gilscope_gil_longest_hold_seconds")


def test_held_and_observed_time_can_be_divided() -> None:
    """
    Auto mode: what windows saw, and all the time, each with what it is a part of.
    """
    seen = full_mode().observation
    holds = HoldTotals(histogram(), histogram(), held_ns=150 * MS, holding_ns=0)
    lock = replace(seen.totals.gils[0], holds=holds, held_ns=1600 * MS)
    totals = replace(seen.totals, gils=(lock,), observed_ns=200 * MS)

    figures = scrape(replace(seen, since_ns=500 * MS, totals=totals))

    def value(what: str, **labels: str) -> float | None:
        return figures.of_process(f"gilscope_gil_{what}_seconds_total", **labels)

    assert (0.15, 0.2) == (
        value("held", interpreter="0", window="full"),
        value("observed", window="full"),
    )
    assert (1.6, 1.5) == (
        value("held", interpreter="0", window="all"),
        value("observed", window="all"),
    )


def test_contention_mode_exports_no_holds() -> None:
    """
    Held time is estimated all the same; what only windows see is absent, not zero.
    """
    seen = convoy().observation
    lock = replace(seen.totals.gils[0], held_ns=700 * MS)

    figures = scrape(replace(seen, totals=replace(seen.totals, gils=(lock,))))

    held = "gilscope_gil_held_seconds_total"
    assert 0.7 == figures.of_process(held, interpreter="0", window="all")
    assert figures.of_process(held, interpreter="0", window="full") is None
    assert figures.of_process("gilscope_gil_observed_seconds_total", window="full") is None
    assert 1 == figures.of_process("gilscope_gil_observed_seconds_total", window="all")
    assert set() == _HOLD_SERIES & figures.names()
    assert _HOLD_SERIES < scrape(full_mode().observation).names()


def test_held_time_that_nobody_knows_is_absent() -> None:
    """
    Not a lock that is never held.
    """
    assert "gilscope_gil_held_seconds_total" not in scrape(convoy().observation).names()


def test_cost_of_tracing_is_exported_in_every_mode() -> None:
    """
    Ratio of the last minute, time and traps since the attachment.
    """
    figures = scrape(full_mode().observation)

    assert 0.0013 == figures.of_process("gilscope_target_overhead_ratio")
    assert 0.0024 == figures.of_process("gilscope_target_overhead_seconds_total")
    assert 1420 == figures.of_process("gilscope_target_traps_total")


def test_share_of_stacks_is_exported_where_stacks_are_read() -> None:
    """
    Without stacks there is no share.
    """
    ratio = "gilscope_gil_stack_sampling_ratio"
    observed = full_mode().observation
    without = replace(observed, totals=replace(observed.totals, cost=TracingCost(0, 0.0, 0)))

    assert 0.25 == scrape(observed).of_process(ratio)
    assert ratio not in scrape(without).names()


def test_waits_that_are_estimated() -> None:
    """
    For how long those were seen that they are estimated from, and how far off that is.
    """
    observed, error = "gilscope_gil_observed_seconds_total", "gilscope_gil_wait_error_ratio"
    all_of_them = full_mode().observation
    cost = TracingCost(0, 0.0, 0, waits_unseen_ns=1500 * MS, wait_error=0.03)
    in_windows = replace(all_of_them, totals=replace(all_of_them.totals, cost=cost))

    assert 2.0 == scrape(in_windows).of_process(observed, window="all")
    assert 0.5 == scrape(in_windows).of_process(observed, window="waits")
    assert 0.03 == scrape(in_windows).of_process(error)
    assert error not in scrape(all_of_them).names()
    assert 2.0 == scrape(all_of_them).of_process(observed, window="waits")


def test_thread_without_a_role_is_exported_when_it_has_one() -> None:
    """
    A counter never moves from one label to another.
    """
    young = thread(9, None, {Kind.CONVOY: Tally(5 * MS, 1)}, waiting_ns=MS)

    figures = scrape(observation((young,)))

    assert "gilscope_gil_thread_wait_seconds_total" not in figures.names()
    assert 1 == figures.of_process("gilscope_gil_waiting_threads")


def test_interpreters_beyond_the_limit_share_a_label() -> None:
    """
    Thirty-two have their own series, whoever comes later is added to "other".
    """
    holds = HoldTotals(histogram(MS), histogram(), held_ns=MS, holding_ns=0)
    gils = tuple(replace(gil(number), drop_requests=1, holds=holds) for number in range(40))

    figures = scrape(observation(gils=gils))

    requests = "gilscope_gil_drop_requests_total"
    assert 1 == figures.of_process(requests, interpreter="31")
    assert figures.of_process(requests, interpreter="32") is None
    assert 8 == figures.of_process(requests, interpreter="other")
    assert 8 == figures.of_process("gilscope_gil_hold_seconds_count", interpreter="other")


def test_quiet_process_exports_zeros() -> None:
    """
    A rate can be taken before the first wait, and the first one is an increase.
    """
    figures = scrape(observation(gils=(gil(),)))

    waits = "gilscope_gil_wait_seconds_count"
    assert 0 == figures.of_process(waits, interpreter="0", after="blocking_call")
    assert figures.of_process(waits, interpreter="0", after="unknown") is None


def test_what_is_not_known_is_not_exported() -> None:
    """
    Where causes are unknown there are no convoys and yields, rather than none.
    """
    blind = replace(PROCESS, method="libc", knows_causes=False)

    figures = scrape(replace(observation(gils=(gil(),)), process=blind))

    assert set() == figures.names() & {
        "gilscope_gil_convoy_waits_total",
        "gilscope_gil_forced_switches_total",
    }
    assert [None, 0] == [
        figures.of_process("gilscope_gil_wait_seconds_count", interpreter="0", after=cause)
        for cause in ("blocking_call", "unknown")
    ]


def test_of_a_lock_that_is_not_asked_for_there_are_failed_wakeups() -> None:
    """
    And no requests, forced switches and slow drops, which it cannot have.
    """
    recorded = convoy().observation
    threads = tuple(
        replace(each, failed_wakeups=Tally(250 * MS, 3)) for each in recorded.totals.threads[:2]
    )
    semaphore = replace(
        recorded,
        process=replace(recorded.process, asks_holder=False, wakes_in_vain=True),
        totals=replace(recorded.totals, threads=threads),
    )

    figures, of_3 = scrape(semaphore), scrape(recorded)

    wakeups = {
        "gilscope_gil_failed_wakeups_total": 6,
        "gilscope_gil_failed_wakeup_wait_seconds_total": 0.5,
    }
    requests = {
        "gilscope_gil_drop_requests_total",
        "gilscope_gil_drop_latency_seconds_count",
        "gilscope_gil_forced_switches_total",
        "gilscope_gil_slow_drops_total",
    }
    assert wakeups == {name: figures.of_process(name) for name in wakeups}
    assert set() == figures.names() & requests
    assert requests == of_3.names() & (requests | set(wakeups))
    helps = {family.name: family.documentation for family in of_3.families}
    for name in requests:
        assert "Left out on" in helps[name.removesuffix("_total").removesuffix("_count")], name


@pytest.mark.parametrize("mode", [Mode.CONTENTION, Mode.FULL])
def test_invalid_target_exports_its_invalidity_and_nothing_else(mode: Mode) -> None:
    """
    No figure of a process whose probes cannot be trusted.
    """
    recording = convoy() if mode is Mode.CONTENTION else full_mode()

    figures = scrape(replace(recording.observation, invalid="why"))

    assert 0 == figures.of_process("gilscope_probe_valid", method="sites")
    of_process = {
        sample.name
        for family in figures.families
        for sample in family.samples
        if "pid" in sample.labels
    }
    assert {"gilscope_probe_valid"} == of_process
    assert 1 == figures.value("gilscope_targets", state="invalid")
    assert 1 == figures.value("gilscope_targets", state="refused")


def test_info_tells_the_runtime_and_its_version() -> None:
    """
    One series a process, always 1, to be joined by the labels of the process.
    """
    seen = convoy().observation
    other = replace(seen, process=replace(seen.process, runtime="pypy", python="3.9.16"))

    python = seen.process.python
    ours = scrape(seen).of_process("gilscope_target_info", runtime="cpython", version=python)
    theirs = scrape(other).of_process("gilscope_target_info", runtime="pypy", version="3.9.16")
    assert (1, 1) == (ours, theirs)


def test_routes_that_are_known_have_series() -> None:
    """
    Requests without a route have none: they may be told one yet.
    """
    figures = scrape(with_traces().observation)

    def value(what: str, route: str) -> float | None:
        return figures.of_process(f"gilscope_gil_route_{what}_total", route=route)

    names = ("wait_seconds", "waits", "requests")
    assert [0.062, 8, 2] == [value(name, "POST /checkout") for name in names]
    assert 1 == len(figures.samples("gilscope_gil_route_waits_total"))
    assert not scrape(convoy().observation).samples("gilscope_gil_route_waits_total")


@pytest.mark.parametrize(("service", "label"), [(None, ""), ("shop", "shop"), ("a\nb", "a b")])
def test_the_service_is_a_label_of_the_target(service: str | None, label: str) -> None:
    """
    Empty where the process does not say.
    """
    seen = convoy().observation
    named = replace(seen, process=replace(seen.process, service=service))
    figures = scrape(named)

    assert 1 == figures.of_process(
        "gilscope_target_info", runtime="cpython", version="3.11.2", service=label
    )
