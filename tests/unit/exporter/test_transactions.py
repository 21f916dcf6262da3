"""From observations of transactions to families."""

from dataclasses import replace

from gilscope.exporter.collector import AgentCollector
from gilscope.model.gil import TracingCost
from gilscope.model.transactions import Library, Method, StmObservation
from support.recordings.gil import full_mode
from support.recordings.transactions import MS, stm_observation
from support.reports.scraped import Fixed, Scrape, read


def _scrape(*transactions: StmObservation) -> Scrape:
    return read(AgentCollector(Fixed(transactions=transactions).source))


def test_transactions_are_counted_by_outcome() -> None:
    """
    Commits and aborts are those of the totals; RPython cancels nothing.
    """
    figures, name = _scrape(stm_observation()), "gilscope_stm_transactions_total"

    assert 30 == figures.of_process(name, outcome="commit")
    assert 10 == figures.of_process(name, outcome="abort")
    assert figures.of_process(name, outcome="cancel") is None


def test_times_are_in_seconds() -> None:
    """
    30 commits of 2 ms, 10 aborts of 1 ms, 4 waits of 5 ms.
    """
    figures = _scrape(stm_observation())

    assert 30 == figures.of_process("gilscope_stm_transaction_seconds_count")
    assert 0.06 == figures.of_process("gilscope_stm_transaction_seconds_sum")
    assert 0.01 == figures.of_process("gilscope_stm_abort_cost_seconds_sum")
    kind = "WAIT_FREE_SEGMENT"
    assert 0.02 == figures.of_process("gilscope_stm_wait_seconds_total", kind=kind)
    assert 4 == figures.of_process("gilscope_stm_waits_total", kind=kind)
    assert 0.006 == figures.of_process("gilscope_stm_gc_seconds_total", generation="minor")


def test_what_is_not_seen_has_no_series() -> None:
    """
    The shared libitm shows neither aborts nor waits nor restarts, the static one has reasons.
    """
    shared = _scrape(stm_observation(Library.LIBITM, Method.NAMES))
    static = _scrape(stm_observation(Library.LIBITM, Method.RESTARTS))
    name = "gilscope_stm_restarts_total"

    assert {
        "gilscope_stm_transactions_total",
        "gilscope_stm_inevitable_total",
        "gilscope_stm_observed_seconds_total",
    } == {name for name in shared.names() if name.startswith("gilscope_stm_")} - {
        f"gilscope_stm_transaction_seconds_{part}" for part in ("bucket", "count", "sum")
    }
    assert shared.of_process("gilscope_stm_transactions_total", outcome="abort") is None
    assert 7 == static.of_process(name, reason="LOCKED_READ")


def test_process_is_a_target_like_any_other() -> None:
    """
    Its probes, traps and losses are in the families that are about all traced processes.
    """
    stm = stm_observation(pid=1)
    figures = read(AgentCollector(Fixed([full_mode().observation], transactions=[stm]).source))
    labels = {"process": "app.py", "pid": "1", "container_id": "", "pod_uid": ""}

    assert 2 == figures.value("gilscope_targets", state="traced")
    assert 1 == figures.value("gilscope_probe_valid", **labels, method="events")
    assert 1 == figures.value("gilscope_lost_events_total", **labels, reason="began_unseen")
    assert 200 == figures.value("gilscope_target_traps_total", **labels)


def test_cost_and_coverage_are_told() -> None:
    """
    As of a process with a GIL; of two seconds, windows have covered half a second.
    """
    observation = replace(
        stm_observation(),
        cost=TracingCost(3 * MS, 0.0125, 200),
        observed_ns=500 * MS,
        is_whole=False,
    )
    figures = _scrape(observation)
    observed = "gilscope_stm_observed_seconds_total"

    assert 0.003 == figures.of_process("gilscope_target_overhead_seconds_total")
    assert 0.0125 == figures.of_process("gilscope_target_overhead_ratio")
    assert 0.5 == figures.of_process(observed, window="full")
    assert 2 == figures.of_process(observed, window="all")


def test_figures_end_with_what_the_probes_see() -> None:
    """
    Of a program that has ended its log it is said so, and nothing else.
    """
    figures = _scrape(stm_observation(invalid="the log has ended"))

    assert 0 == figures.of_process("gilscope_probe_valid", method="events")
    assert 1 == figures.value("gilscope_targets", state="invalid")
    assert not [name for name in figures.names() if name.startswith("gilscope_stm_")]
