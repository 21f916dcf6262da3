"""Locks beside the GIL: which threads wait for, where, and what else they are stopped by."""

from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import KEPT_WAITING, SOME
from dashboards.generator.panels import Column, Curve, curves, figure, listing
from dashboards.generator.queries import PROCESS, Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics import table as metrics

__all__ = ["VARIABLES", "sections"]

VARIABLES = {"process": metrics.LOCK_OBSERVED, "pid": metrics.LOCK_OBSERVED}

_SERIES = Scope(tuple(VARIABLES))
_LEGEND = "{{process}} {{pid}}"
_NOTHING = "No locks are traced. Is gilscope serve running with --locks?"
_NO_WAITS = "No thread waited for a lock in this time"
_NO_STOPS = "The world was not stopped in this time"
_OF_OTHERS = "object|lock|rlock|interpreter|c_api|other"


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("At this moment", (_figures(),)),
        Section("Which lines wait, and for what", (_places(), _kinds())),
        Section("Stops of the world", (_stops(),)),
        Section("How much is seen, and what it costs", (_coverage(),)),
    ]


def _figures() -> Line:
    return Line(
        4,
        (
            figure(
                "Threads that wait for a lock",
                "How many, at any moment; from 1 on a thread does nothing else. Which lines and "
                "which locks is below. Threads with nothing to do are not among them.",
                units.Short,
                _SERIES.rate(metrics.LOCK_WAIT, kind=_OF_OTHERS),
                empty=_NOTHING,
                steps=KEPT_WAITING,
            ),
            figure(
                "Threads that are stopped",
                "How many, at any moment, by a stop of the world: collections of garbage, forks, "
                "and what changes code or types. Collect less often, or move what stops it.",
                units.Short,
                _SERIES.rate(metrics.LOCK_WAIT, kind="world_stop"),
                empty=_NOTHING,
                steps=KEPT_WAITING,
            ),
            figure(
                "Threads that wait for others to stop",
                "How many, at any moment: a thread in a long call into C that does not let itself "
                "be stopped keeps them waiting.",
                units.Short,
                _SERIES.rate(metrics.LOCK_WAIT, kind="world_stop_request"),
                empty=_NOTHING,
                steps=KEPT_WAITING,
            ),
            figure(
                "Threads with nothing to do",
                "How many, at any moment: at conditions, events and queues. No contention.",
                units.Short,
                _SERIES.rate(metrics.LOCK_IDLE),
                empty=_NOTHING,
            ),
            figure(
                "Waits not counted in full",
                "In the time range. docs/locks.md explains each reason.",
                units.Short,
                _SERIES.gain(metrics.LOCK_LOST_EVENTS, span="$__range"),
                empty="None",
                steps=SOME,
            ),
        ),
    )


def _places() -> Line:
    labels = {
        "waiter": "place that waits",
        "releaser": "place that released",
        "kind": "kind",
        "type": "type",
    }
    lost = _SERIES.rate(metrics.LOCK_BLOCKED, *labels, span="$__range")
    waits = _SERIES.rate(metrics.LOCK_BLOCKED_TIMES, *labels, span="$__range")
    places = listing(
        "Places, over the time range",
        "Begin with the first row: keep the lock for a shorter time, give each thread an object of "
        "its own, or share less.",
        labels,
        (
            Column("threads that wait", lost, units.Short, KEPT_WAITING),
            Column("waits", waits, units.CountsPerSecond),
        ),
        empty=_NO_WAITS,
    )
    return Line(9, (places,))


def _kinds() -> Line:
    waiting = curves(
        "Threads that wait, by what for",
        "object: several threads change one list, dict or other object. interpreter: they import, "
        "make types or weak references.",
        units.Short,
        [Curve(_SERIES.rate(metrics.LOCK_WAIT, "kind"), "{{kind}}")],
        empty=_NO_WAITS,
    )
    by_process = curves(
        "Threads that wait, by service",
        "A process that stands out has its own places in the list above.",
        units.Short,
        [Curve(_SERIES.rate(metrics.LOCK_WAIT, *PROCESS), _LEGEND)],
        empty=_NO_WAITS,
    )
    mean = curves(
        "Mean wait, by what for",
        "Many short waits cost less than they look; few long ones are what a request feels.",
        units.Seconds,
        [
            Curve(
                _SERIES.rate(metrics.LOCK_WAIT, "kind").per(
                    _SERIES.rate(metrics.LOCK_WAITS, "kind")
                ),
                "{{kind}}",
            )
        ],
        empty=_NO_WAITS,
    )
    return Line(8, (waiting, by_process, mean))


def _stops() -> Line:
    how_often = curves(
        "Stops a second, by cause",
        "gc: collections of garbage. other: forks, and what changes code or types: decorators, "
        "named tuples and data classes that are made at run time.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.WORLD_STOPS, "cause"), "{{cause}}")],
        empty=_NO_STOPS,
    )
    share = curves(
        "Share of the time in which the world stands, by service",
        "Nothing runs meanwhile but the thread that has asked for it.",
        units.PercentUnit,
        [
            Curve(
                _SERIES.rate(metrics.WORLD_STOPPED, *PROCESS).per(
                    _SERIES.rate(metrics.LOCK_OBSERVED, *PROCESS, window="full")
                ),
                _LEGEND,
            )
        ],
        empty=_NO_STOPS,
    )
    to_stop = curves(
        "Time until all threads have stopped, mean of a stop",
        "More than a millisecond is a call into C that does not let itself be stopped, or a "
        "thread without a CPU.",
        units.Seconds,
        [
            Curve(
                _SERIES.rate(metrics.WORLD_STOPPING, *PROCESS).per(
                    _SERIES.rate(metrics.WORLD_STOPS, *PROCESS)
                ),
                _LEGEND,
            )
        ],
        empty=_NO_STOPS,
    )
    return Line(8, (how_often, share, to_stop))


def _coverage() -> Line:
    observed = curves(
        "Share of the time in which locks are seen",
        "Below 1, seeing all of it would cost more than the overhead budget: all figures of that "
        "process are of windows at random, and so lower than the true ones. Divide them by this "
        "share, as the alerts do.",
        units.PercentUnit,
        [
            Curve(
                _SERIES.rate(metrics.LOCK_OBSERVED, *PROCESS, window="full").per(
                    _SERIES.rate(metrics.LOCK_OBSERVED, *PROCESS, window="all")
                ),
                _LEGEND,
            )
        ],
        empty=_NOTHING,
    )
    cost = curves(
        "What tracing locks costs, by the process' own CPU time",
        "Stays within the overhead budget; more right after a process was found is the first "
        "window, which is on credit.",
        units.PercentUnit,
        [Curve(_SERIES.gauge(metrics.LOCK_OVERHEAD_RATIO, *PROCESS), _LEGEND)],
        empty=_NOTHING,
    )
    spent = curves(
        "CPU time that tracing locks takes",
        "In CPUs. The traps behind it are beside this.",
        units.Short,
        [Curve(_SERIES.rate(metrics.LOCK_OVERHEAD, *PROCESS), _LEGEND)],
        empty=_NOTHING,
    )
    traps = curves(
        "Traps on locks a second",
        "About four for each wait.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.LOCK_TRAPS, *PROCESS), _LEGEND)],
        empty=_NOTHING,
    )
    valid = curves(
        "Processes whose figures on locks can be trusted",
        "Fewer than are traced: the log of gilscope says why.",
        units.Short,
        [Curve(_SERIES.gauge(metrics.LOCK_PROBE_VALID, "process", how="sum"), "{{process}}")],
        empty=_NOTHING,
    )
    return Line(8, (observed, cost, spent, traps, valid))
