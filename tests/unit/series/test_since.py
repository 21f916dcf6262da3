"""What a process has done since an earlier observation of it."""

from dataclasses import replace

from gilscope.model.gil import (
    Edge,
    GilObservation,
    HeldBy,
    HolderSamples,
    HoldTotals,
    SlowDrop,
    Tally,
    ThreadTotals,
    TracingCost,
)
from gilscope.model.kinds import Cause, Kind
from gilscope.model.traces import RouteWait
from gilscope.series.since import cost_since, observation_since
from support.recordings.gil import (
    CRUNCHING,
    MATCHING,
    MS,
    SERVING,
    full_mode,
    gil,
    histogram,
    observation,
    thread,
    with_edges,
    with_holders,
    with_traces,
)

_CONVOY, _PREEMPTION = Kind.CONVOY, Kind.PREEMPTION
_THEN_NS, _NOW_NS = 500 * MS, 2000 * MS
_COST_THEN = TracingCost(100, 0.1, 10, used_ns=1000)
_COST_NOW = TracingCost(250, 0.2, 25, used_ns=1900)


def _at(ns: int, seen: GilObservation, **totals: object) -> GilObservation:
    return replace(seen, totals=replace(seen.totals, at_ns=ns, **totals))  # type: ignore[arg-type]


def _threads(
    now: tuple[ThreadTotals, ...], then: tuple[ThreadTotals, ...]
) -> list[tuple[object, ...]]:
    earlier, later = _at(_THEN_NS, observation(then)), _at(_NOW_NS, observation(now))
    found = observation_since(later, earlier).totals.threads
    return [(each.tid, each.role, each.lost[_CONVOY], each.waiting_ns) for each in found]


def test_nothing_has_happened_since_now() -> None:
    """
    Whatever is in an observation, less itself it is nothing.
    """
    recording = with_holders()
    seen = replace(
        recording.observation,
        totals=replace(
            recording.observation.totals, cost=TracingCost(5 * MS, 0.01, 100), observed_ns=7 * MS
        ),
    )
    left = observation_since(seen, seen).totals
    (lock,) = left.gils

    assert 0 == left.wait_ns == sum(thread.waits for thread in left.threads)
    assert ((), (), {}) == (left.edges, left.slow_drops, left.lost_events)
    assert HolderSamples(0, 0, ()) == left.holder_samples
    assert (0, 0, 0) == (lock.convoy_waits, lock.forced_switches, lock.drop_requests)
    assert 0 == lock.drop_latency.count == sum(waits.count for waits in lock.waits.values())
    assert (TracingCost(0, 0.01, 0), 0) == (left.cost, left.observed_ns)


def test_it_begins_where_the_earlier_one_was_made() -> None:
    """
    So shares of the time are those of the time between.
    """
    seen = observation_since(_at(_NOW_NS, observation()), _at(_THEN_NS, observation()))

    assert (_THEN_NS, _NOW_NS) == (seen.since_ns, seen.totals.at_ns)


def test_threads_that_live_have_what_they_lost_since() -> None:
    """
    Also of a wait that was in flight then, and of one that still is.
    """
    then = (thread(1, "serve", {_CONVOY: Tally(300 * MS, 3)}, waiting_ns=100 * MS),)
    now = (
        thread(1, "serve", {_CONVOY: Tally(1000 * MS, 8)}, waiting_ns=20 * MS),
        thread(2, "crunch", {_CONVOY: Tally(50 * MS, 1)}),
    )

    assert [
        (1, "serve", Tally(700 * MS, 5), 20 * MS),
        (2, "crunch", Tally(50 * MS, 1), 0),
    ] == _threads(now, then)


def test_a_new_thread_may_have_the_number_of_an_old_one() -> None:
    """
    It has lost less than that one had already: all of it is of now.
    """
    then = (thread(1, "serve", {_CONVOY: Tally(300 * MS, 3)}),)
    now = (thread(1, "serve", {_CONVOY: Tally(10 * MS, 1)}),)

    assert [(1, "serve", Tally(10 * MS, 1), 0)] == _threads(now, then)


def test_threads_that_have_ended_are_sums_of_their_role() -> None:
    """
    What one of them had lost while it was still alive then is not lost once more.
    """

    def ended(ns: int, count: int) -> ThreadTotals:
        return replace(thread(0, "serve", {_CONVOY: Tally(ns, count)}), is_alive=False)

    then = (ended(100 * MS, 1), thread(7, "serve", {_CONVOY: Tally(300 * MS, 3)}))
    now = (ended(450 * MS, 6),)
    same = (ended(400 * MS, 4),)

    assert [(0, "serve", Tally(50 * MS, 2), 0)] == _threads(now, then)
    assert [] == _threads(same, then)


def test_locks_have_the_histograms_of_the_time_between() -> None:
    """
    A lock that is new is all of that time.
    """
    then = replace(
        gil(preemption=histogram(4 * MS)),
        drop_latency=histogram(90_000),
        drop_requests=3,
        held_ns=9,
    )
    now = replace(
        gil(preemption=histogram(4 * MS, 6 * MS)),
        drop_latency=histogram(90_000, 70_000),
        drop_requests=8,
        held_ns=30,
    )
    new = replace(gil(1), drop_requests=2)
    found = observation_since(
        _at(_NOW_NS, observation(gils=(now, new))), _at(_THEN_NS, observation(gils=(then,)))
    )
    first, second = found.totals.gils

    assert histogram(6 * MS) == first.waits[Cause.PREEMPTION]
    assert (histogram(70_000), 5, 21) == (first.drop_latency, first.drop_requests, first.held_ns)
    assert new == second


def test_holds_are_those_of_the_time_between() -> None:
    """
    The one that is in flight stays as it is.
    """
    (lock,) = full_mode().observation.totals.gils
    assert lock.holds is not None
    then = replace(lock, holds=HoldTotals(histogram(MS), histogram(), held_ns=MS, holding_ns=0))
    holds = replace(lock.holds, finished=lock.holds.finished + histogram(MS), held_ns=5 * MS)
    now = replace(lock, holds=holds)
    found = (
        observation_since(
            _at(_NOW_NS, observation(gils=(now,))), _at(_THEN_NS, observation(gils=(then,)))
        )
        .totals.gils[0]
        .holds
    )

    assert found is not None
    assert (lock.holds.finished, 4 * MS) == (found.finished, found.held_ns)
    assert lock.holds.holding_ns == found.holding_ns


def test_edges_come_in_the_order_of_what_they_cost_since() -> None:
    """
    Those that have cost nothing since are left out.
    """
    then = (
        Edge(_CONVOY, SERVING, CRUNCHING, Tally(900 * MS, 9)),
        Edge(_PREEMPTION, CRUNCHING, SERVING, Tally(5 * MS, 1)),
    )
    now = (
        Edge(_CONVOY, SERVING, CRUNCHING, Tally(910 * MS, 10)),
        Edge(_PREEMPTION, CRUNCHING, MATCHING, Tally(40 * MS, 2)),
        Edge(_PREEMPTION, CRUNCHING, SERVING, Tally(5 * MS, 1)),
    )
    found = observation_since(
        _at(_NOW_NS, observation(), edges=now), _at(_THEN_NS, observation(), edges=then)
    )

    assert (
        Edge(_PREEMPTION, CRUNCHING, MATCHING, Tally(40 * MS, 2)),
        Edge(_CONVOY, SERVING, CRUNCHING, Tally(10 * MS, 1)),
    ) == found.totals.edges


def test_the_longest_slow_drop_is_not_longer_than_all_of_them() -> None:
    """
    One that was in flight then counts with the time since.
    """
    then = (
        SlowDrop(CRUNCHING, Tally(500 * MS, 2), longest_ns=400 * MS),
        SlowDrop(SERVING, Tally(70 * MS, 1), longest_ns=70 * MS, in_flight_ns=70 * MS),
    )
    now = (
        SlowDrop(CRUNCHING, Tally(530 * MS, 3), longest_ns=400 * MS),
        SlowDrop(SERVING, Tally(90 * MS, 1), longest_ns=90 * MS),
        SlowDrop(MATCHING, Tally(25 * MS, 1), longest_ns=25 * MS),
    )
    found = observation_since(
        _at(_NOW_NS, observation(), slow_drops=now), _at(_THEN_NS, observation(), slow_drops=then)
    )

    assert (
        SlowDrop(CRUNCHING, Tally(30 * MS, 1), longest_ns=30 * MS),
        SlowDrop(MATCHING, Tally(25 * MS, 1), longest_ns=25 * MS),
        SlowDrop(SERVING, Tally(20 * MS, 1), longest_ns=20 * MS),
    ) == found.totals.slow_drops


def test_samples_of_holders_are_those_of_the_time_between() -> None:
    """
    A place that has not been met since is not there.
    """
    then = HolderSamples(10, 100 * MS, (HeldBy(CRUNCHING, 60 * MS), HeldBy(SERVING, 5 * MS)))
    now = HolderSamples(
        40,
        400 * MS,
        (HeldBy(CRUNCHING, 80 * MS), HeldBy(MATCHING, 90 * MS), HeldBy(SERVING, 5 * MS)),
    )
    found = observation_since(
        _at(_NOW_NS, observation(), holder_samples=now),
        _at(_THEN_NS, observation(), holder_samples=then),
    )

    assert (
        HolderSamples(30, 300 * MS, (HeldBy(MATCHING, 90 * MS), HeldBy(CRUNCHING, 20 * MS)))
        == found.totals.holder_samples
    )


def test_edges_still_add_up_to_what_threads_have_lost() -> None:
    """
    As they do in both observations.
    """
    seen = with_edges().observation
    left = observation_since(
        _at(_NOW_NS, seen), _at(_THEN_NS, observation(), lost_events={"began_unseen": 1})
    ).totals

    assert left.wait_ns == sum(edge.lost.ns for edge in left.edges)
    assert {"began_unseen": 1} == left.lost_events


def test_what_tracing_has_cost_since() -> None:
    """
    The share of the last minute is that of now.
    """
    assert TracingCost(150, 0.2, 15, used_ns=900) == cost_since(_COST_NOW, _COST_THEN)


def test_where_a_cost_is_not_known() -> None:
    """
    All of it, or nothing; CPU time that was not known once is not known.
    """
    unused = TracingCost(250, 0.2, 25)

    assert _COST_NOW == cost_since(_COST_NOW, None)
    assert cost_since(None, _COST_THEN) is None
    assert TracingCost(150, 0.2, 15) == cost_since(unused, _COST_THEN)


def test_requests_since() -> None:
    """
    What each has waited since, the worst first; one that has not waited since is gone.
    """
    then = with_traces().observation
    traces = then.totals.traces
    assert traces is not None
    longer = replace(traces.worst[0], wait_ns=traces.worst[0].wait_ns + 2 * MS, waits=4)
    new = replace(traces.worst[1], trace_id="ff" * 16, wait_ns=5 * MS)
    later = replace(
        traces, number=8, wait_ns=77 * MS, waits=13, worst=(longer, traces.worst[1], new)
    )
    found = observation_since(_at(_NOW_NS, then, traces=later), _at(_THEN_NS, then)).totals.traces

    assert found is not None
    assert (2, 7 * MS, 2) == (found.number, found.wait_ns, found.waits)
    assert [(new.trace_id, 5 * MS, 1), (longer.trace_id, 2 * MS, 1)] == [
        (each.trace_id, each.wait_ns, each.waits) for each in found.worst
    ]


def test_requests_that_kept_the_gil_since() -> None:
    """
    What each has kept it since; one that has not is gone.
    """
    then = with_traces().observation
    traces = then.totals.traces
    assert traces is not None
    (slow,) = traces.slow_drops.worst
    longer = replace(slow, ns=slow.ns + 30 * MS, times=3)
    new = replace(slow, trace_id="ff" * 16, ns=50 * MS, times=1)
    drops = replace(traces.slow_drops, ns=480 * MS, times=4, worst=(longer, new))
    later = replace(traces, slow_drops=drops)
    found = observation_since(_at(_NOW_NS, then, traces=later), _at(_THEN_NS, then)).totals.traces

    assert found is not None
    assert (80 * MS, 2) == (found.slow_drops.ns, found.slow_drops.times)
    assert [(new.trace_id, 50 * MS, 1), (slow.trace_id, 30 * MS, 1)] == [
        (each.trace_id, each.ns, each.times) for each in found.slow_drops.worst
    ]
    assert 30 * MS == found.slow_drops.worst[1].longest_ns
    assert (0, 0, ()) == (found.long_holds.ns, found.long_holds.times, found.long_holds.worst)


def test_a_request_that_waited_before_and_waits_on() -> None:
    """
    It is one of those since, and no wait of it is longer than what it has waited since.
    """
    then = with_traces().observation
    traces = then.totals.traces
    assert traces is not None
    longer = replace(traces.worst[0], wait_ns=traces.worst[0].wait_ns + 2 * MS, waits=4)
    later = replace(traces, wait_ns=72 * MS, waits=12, worst=(longer, *traces.worst[1:]))
    since = observation_since(_at(_NOW_NS, then, traces=later), _at(_THEN_NS, then))
    found = since.totals.traces

    assert found is not None
    assert (1, 2 * MS, 1) == (found.number, found.wait_ns, found.waits)
    assert [2 * MS] == [each.longest_ns for each in found.worst]


def test_routes_since() -> None:
    """
    One of which no request has waited since is gone, and a new one counts as a whole.
    """
    then = with_traces().observation
    traces = then.totals.traces
    assert traces is not None
    pay, rest = traces.routes
    more = replace(pay, requests=3, wait_ns=pay.wait_ns + 5 * MS, waits=10)
    again = replace(more, requests=pay.requests)
    new = replace(pay, route="/new", requests=1, wait_ns=9 * MS, waits=1, longest_ns=9 * MS)

    def since(*routes: RouteWait) -> list[tuple[str | None, int, int, int, int]]:
        later = replace(traces, routes=routes)
        seen = observation_since(_at(_NOW_NS, then, traces=later), _at(_THEN_NS, then))
        found = seen.totals.traces
        assert found is not None
        return [(e.route, e.requests, e.wait_ns, e.waits, e.longest_ns) for e in found.routes]

    gained = ("POST /checkout", 1, 5 * MS, 2, 5 * MS)
    assert [("/new", 1, 9 * MS, 1, 9 * MS), gained] == since(more, rest, new)
    assert [gained] == since(again, rest)
