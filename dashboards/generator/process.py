"""A process: what its threads lose, to whom, and why."""

from dashboards.generator.durations import durations
from dashboards.generator.gil_held import share_held
from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import (
    BUSY,
    KEPT_WAITING,
    LONG_WAIT,
    MANY_CONVOYS,
)
from dashboards.generator.panels import Column, Curve, curves, figure, listing
from dashboards.generator.queries import PROCESS, Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics import table as metrics

__all__ = ["VARIABLES", "sections"]

VARIABLES = {
    "container_id": metrics.PROBE_VALID,
    "process": metrics.GIL_WAITING_THREADS,
    "pid": metrics.GIL_WAITING_THREADS,
}

_SERIES = Scope(tuple(VARIABLES))
_SHOWN = 10
_NOBODY = "No such process is traced in this time"
_NO_WAITS = "No thread waited for the GIL in this time"
_NO_SAMPLES = "No holder has been sampled yet, or stacks are not read"
_NO_ROUTES = "No route is published for readers outside of the process, or no request waited"
_NO_HOLDS = "No window of full mode in this time. Contention mode sees no holds"
_NO_SLOW_DROPS = "Every holder dropped the GIL within 10 ms"


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("At this moment", (_figures(),)),
        Section("Waits", _waits()),
        Section("Who keeps whom waiting", _blame()),
        Section("Requests", (_requests(),)),
        Section("Convoys, and holders slow to drop the GIL", _causes()),
        Section("Who has the GIL", _holds()),
        Section("Releases and switches", _switches()),
        Section("What tracing costs, and misses", (_tracing(),)),
    ]


def _figures() -> Line:
    convoys = _SERIES.rate(metrics.GIL_CONVOY_WAITS).per(
        _SERIES.count(metrics.GIL_WAIT, after="blocking_call")
    )
    return Line(
        4,
        (
            figure(
                "Threads kept waiting",
                "How many of the threads wait for the GIL at any moment. From 1 on, one thread "
                "fewer would do the same work.",
                units.Short,
                _SERIES.rate(metrics.GIL_THREAD_WAIT),
                empty=_NOBODY,
                steps=KEPT_WAITING,
            ),
            figure(
                "GIL held",
                "Share of the time; of several services the highest, each the mean of its "
                "processes. What is missing to 100 % is all that more threads can gain.",
                units.PercentUnit,
                share_held(_SERIES, *PROCESS).highest(),
                empty=_NOBODY,
                steps=BUSY,
            ),
            figure(
                "Convoys in contended returns",
                "Share of the waits after a blocking call that last for a switch interval or more "
                "(5 ms on PyPy and CPython 2.7, which have none). "
                "High: threads that compute keep those that do I/O waiting. Part them.",
                units.PercentUnit,
                convoys,
                empty="No waits after blocking calls",
                steps=MANY_CONVOYS,
            ),
            figure(
                "Waiting now",
                "Threads that waited at the last scrape. Who keeps them waiting is below.",
                units.Short,
                _SERIES.gauge(metrics.GIL_WAITING_THREADS, how="sum"),
                empty=_NOBODY,
            ),
            figure(
                "Longest wait in flight",
                "Seconds mean that something does not release the GIL: `gilscope top` shows both "
                "stacks while it lasts.",
                units.Seconds,
                _SERIES.gauge(metrics.GIL_LONGEST_WAIT),
                empty=_NOBODY,
                steps=LONG_WAIT,
            ),
            figure(
                "Longest hold in flight",
                "Seconds: `gilscope top` shows the code. Seen in windows of full mode alone, so "
                "mostly 0 in auto mode.",
                units.Seconds,
                _SERIES.gauge(metrics.GIL_LONGEST_HOLD),
                empty=_NOBODY,
                steps=LONG_WAIT,
            ),
        ),
    )


def _waits() -> tuple[Line, ...]:
    by_role = curves(
        "Threads kept waiting, by role",
        "Which threads lose the time. A role is the function that a thread runs for its life.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_THREAD_WAIT, "role").top(_SHOWN), "{{role}}")],
        empty=_NO_WAITS,
    )
    by_cause = curves(
        "Waits a second, by what came before",
        "After blocking_call: threads come back from I/O and find the GIL held. After preemption: "
        "threads that compute preempt each other.",
        units.CountsPerSecond,
        [Curve(_SERIES.count(metrics.GIL_WAIT, "after"), "{{after}}")],
        empty=_NO_WAITS,
    )
    return (
        Line(8, (by_role, by_cause)),
        durations(
            _SERIES,
            "Waits",
            "A band at 5 ms is the switch interval: waiters queue behind threads that compute "
            "(PyPy and CPython 2.7 have none: there it lies where their ticks end). "
            "Bands above are queues, or holders that do not drop the GIL.",
            metrics.GIL_WAIT,
            _NO_WAITS,
        ),
    )


def _blame() -> tuple[Line, ...]:
    labels = {"waiter": "waits at", "holder": "held by", "kind": "kind"}
    lost = _SERIES.rate(metrics.GIL_BLOCKED, *labels, span="$__range")
    times = _SERIES.rate(metrics.GIL_BLOCKED_TIMES, *labels, span="$__range")
    pairs = listing(
        "Pairs of places, over the time range",
        "Begin with the holder in the first row: what it does in that line is what the waiters "
        "wait for. Move it to another process, make it shorter, or let it release the GIL.",
        labels,
        (
            Column("threads kept waiting", lost, units.Short, KEPT_WAITING),
            Column("each time for", lost.per(times), units.Seconds, LONG_WAIT),
        ),
        empty=_NO_WAITS,
    )
    over_time = curves(
        "Threads kept waiting, by whose code holds the GIL",
        "The line of the application that the holder was in, whatever library it had called. One "
        "that appears with a deployment is what was deployed.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_HOLDER, "holder").top(_SHOWN), "{{holder}}")],
        empty=_NO_WAITS,
    )
    held = curves(
        "GILs held, by whose code",
        "How many at any moment, whether anybody waits or not, by samples of the holder's stack. "
        "One line that has it all the time while no thread waits is what costs the time, or blocks "
        "the event loop.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_HELD_BY, "holder").top(_SHOWN), "{{holder}}")],
        empty=_NO_SAMPLES,
    )
    why = curves(
        "Why holders keep the GIL",
        "What the holder does while others wait, by samples of it: Python code, garbage "
        "collection, a call into C that lasts (native), a system call with the GIL held, no CPU.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_HOLDER, "state"), "{{state}}")],
        empty=_NO_WAITS,
    )
    return (Line(9, (pairs,)), Line(8, (over_time, why, held)))


def _requests() -> Line:
    waited = _SERIES.rate(metrics.GIL_ROUTE_WAIT, "route")
    requests = _SERIES.rate(metrics.GIL_ROUTE_REQUESTS, "route")
    mean = curves(
        "Waited for the GIL, a request, by route",
        "The mean of the requests that have waited, where a tracer publishes which request each "
        "thread serves. The report (gilscope snapshot --full) says behind whom.",
        units.Seconds,
        [Curve(waited.per(requests).top(_SHOWN), "{{route}}")],
        empty=_NO_ROUTES,
    )
    kept = curves(
        "Threads kept waiting, by route",
        "Which requests the time is taken from. A route that is called often may lose much with "
        "little for each request.",
        units.Short,
        [Curve(waited.top(_SHOWN), "{{route}}")],
        empty=_NO_ROUTES,
    )
    return Line(8, (mean, kept))


def _causes() -> tuple[Line, ...]:
    convoys = curves(
        "Convoy waits and contended returns a second",
        "The nearer the two lines, the more of the returns from blocking calls end in a queue "
        "behind threads that compute.",
        units.CountsPerSecond,
        [
            Curve(_SERIES.rate(metrics.GIL_CONVOY_WAITS), "convoy waits"),
            Curve(_SERIES.count(metrics.GIL_WAIT, after="blocking_call"), "contended returns"),
        ],
        empty=_NO_WAITS,
    )
    slow = curves(
        "Slow to drop the GIL, by holder",
        "How many drop requests to this place are unanswered at any moment. As a rule it is "
        "a call into C: release the GIL there, or call it with less at a time. Empty for PyPy and "
        "CPython 2.7, whose threads do not ask for the GIL.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_SLOW_DROP, "holder").top(_SHOWN), "{{holder}}")],
        empty=_NO_SLOW_DROPS,
    )
    requests = curves(
        "Drop requests and forced switches, a second",
        "Threads that compute side by side switch up to 200 times a second. Far more requests than "
        "switches: holders that do not listen. PyPy has no requests, and switches after so many "
        "bytecodes; CPython 2.7 has neither.",
        units.CountsPerSecond,
        [
            Curve(_SERIES.rate(metrics.GIL_DROP_REQUESTS), "requests"),
            Curve(_SERIES.rate(metrics.GIL_FORCED_SWITCHES), "forced switches"),
        ],
        empty=_NO_WAITS,
    )
    failed = curves(
        "Failed wake-ups, a second",
        "CPython 2.7 alone: a thread is woken because the GIL is free, and finds it taken again. "
        "Fewer threads that compute, one CPU for all of them, or processes help.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.GIL_FAILED_WAKEUPS), "failed wake-ups")],
        empty="no threads of a CPython 2.7",
    )
    lost = curves(
        "Waited after failed wake-ups",
        "CPython 2.7 alone: threads that wait although the GIL had been free for them, at any "
        "moment.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_FAILED_WAKEUP_WAIT), "threads")],
        empty="no threads of a CPython 2.7",
    )
    return Line(8, (convoys, slow, requests)), Line(6, (failed, lost))


def _holds() -> tuple[Line, ...]:
    # A role has the GIL for a share of the time that windows have covered, and so do they all.
    observed = _SERIES.rate(metrics.GIL_OBSERVED, *PROCESS, window="full")
    attached = _SERIES.rate(metrics.GIL_OBSERVED, *PROCESS, window="all")
    by_role = _SERIES.rate(metrics.GIL_THREAD_HOLD, *PROCESS, "role").per(observed, *PROCESS)
    shares = curves(
        "Share of the time that a role has the GIL",
        "What has most of it is what to make faster, or to move. Known from windows of full mode, "
        "and not for PyPy, whose holds are not seen.",
        units.PercentUnit,
        [Curve(by_role.top(_SHOWN), "{{role}} {{process}} {{pid}}")],
        empty=_NO_HOLDS,
    )
    covered = curves(
        "Share of the time that the GIL is held, and that windows cover",
        "The lower the windows' line, the fewer holds the figures of this section rest on. A "
        "higher --overhead-budget opens more of them.",
        units.PercentUnit,
        [
            Curve(
                share_held(_SERIES, *PROCESS),
                "held, {{process}} {{pid}}",
            ),
            Curve(observed.per(attached), "windows, {{process}} {{pid}}"),
        ],
        empty=_NOBODY,
        most=1,
    )
    return (
        Line(8, (shares, covered)),
        durations(
            _SERIES,
            "Holds",
            "Holds of about 5 ms are threads that compute until they are asked to yield. Longer "
            "ones are code that does not drop the GIL. Holds of PyPy are not seen.",
            metrics.GIL_HOLD,
            _NO_HOLDS,
        ),
    )


def _switches() -> tuple[Line, ...]:
    return (
        durations(
            _SERIES,
            "Drop latency",
            "From a drop request until the release. Much more than a millisecond is code "
            "that does not listen, and is named above by its place. Empty for PyPy and CPython "
            "2.7, whose threads do not ask.",
            metrics.GIL_DROP_LATENCY,
            "No drop request in this time",
        ),
        durations(
            _SERIES,
            "Switch latency",
            "From a release to the next thread's acquisition. Much more than tens of microseconds: "
            "the waiters lack a CPU. Give the process more of them, or see who uses them. Empty "
            "for PyPy, whose holds are not seen.",
            metrics.GIL_SWITCH_LATENCY,
            _NO_HOLDS,
        ),
    )


def _tracing() -> Line:
    cost = curves(
        "Estimated cost of tracing",
        "By the CPU time that the process uses itself. Above the overhead budget: the waits alone "
        "cost more, for there are very many.",
        units.PercentUnit,
        [Curve(_SERIES.gauge(metrics.TARGET_OVERHEAD_RATIO, *PROCESS), "{{process}} {{pid}}")],
        empty=_NOBODY,
    )
    traps = curves(
        "Probes run into, a second",
        "What the cost consists of. In auto mode it rises while a window is open.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.TARGET_TRAPS, *PROCESS), "{{process}} {{pid}}")],
        empty=_NOBODY,
    )
    lost = curves(
        "Events lost since the attachment, by reason",
        "A few began_unseen at the attachment are normal. gilscope-serve(8) explains each reason.",
        units.Short,
        [Curve(_SERIES.total(metrics.LOST_EVENTS, "reason"), "{{reason}}")],
        empty="Nothing was lost",
    )
    valid = figure(
        "Processes whose probes are valid",
        "Below the number of processes: some show no figures rather than wrong ones, and the "
        "agent's own page says why.",
        units.Short,
        _SERIES.gauge(metrics.PROBE_VALID, how="sum"),
        empty=_NOBODY,
    )
    return Line(8, (cost, traps, lost, valid))
