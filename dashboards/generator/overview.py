"""The overview: which processes suffer, how much, and since when."""

from dashboards.generator.containers import NAMES, named
from dashboards.generator.gil_held import share_held
from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import (
    BUDGET,
    BUSY,
    CONVOYS,
    KEPT_WAITING,
    LONG_WAIT,
    MANY_CONVOYS,
    SLOW_DROP,
    SOME,
)
from dashboards.generator.panels import Column, Curve, Panel, curves, figure, listing
from dashboards.generator.queries import PROCESS, Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family

__all__ = ["VARIABLES", "sections"]

VARIABLES: dict[str, Family] = {"container_id": metrics.PROBE_VALID}

_SERIES = Scope(tuple(VARIABLES))
_LEGEND = "{{process}} {{pid}} {{instance}}"
_SHOWN = 10
_NOBODY = "No traced process. Is gilscope serve running, and scraped?"
_NO_NAMES = "No traced process is in a container that kube-state-metrics knows"
_NO_TRANSACTIONS = "Neither a process with transactions is traced nor an STM log followed"
_LOOK_CLOSER = (
    "/d/gilscope-process?${datasource:queryparam}&${__url_time_range}"
    "&var-instance=${__data.fields.instance}"
    "&var-process=${__data.fields.process}&var-pid=${__data.fields.pid}"
)


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("At this moment", (_figures(),)),
        Section("Which processes suffer", (Line(9, (_processes(),)), Line(7, (_containers(),)))),
        Section("Since when", _since_when()),
        Section("Transactions", (_transactions(),)),
    ]


def _figures() -> Line:
    traced = figure(
        "Traced processes",
        "Where one is missing, `gilscope doctor -p PID` says why it cannot be traced.",
        units.Short,
        _SERIES.gauge(metrics.TARGETS, how="sum", state="traced"),
        empty="No agent is scraped",
    )
    untraced = figure(
        "Not traced",
        "Pythons that were found and cannot be traced, or whose probes failed their checks. The "
        "agent's own page gives the reason for each; the Agent dashboard says which agent.",
        units.Short,
        _SERIES.gauge(metrics.TARGETS, how="sum", state="invalid|refused"),
        empty="No agent is scraped",
        steps=SOME,
    )
    waiting = figure(
        "Threads kept waiting",
        "How many threads wait for a GIL at any moment, over all processes. The table below says "
        "whose they are.",
        units.Short,
        _SERIES.rate(metrics.GIL_THREAD_WAIT),
        empty=_NOBODY,
        steps=KEPT_WAITING,
    )
    longest = figure(
        "Longest wait in flight",
        "Seconds mean that something keeps a GIL and does not release it. `gilscope top` on that "
        "host shows both stacks while it lasts.",
        units.Seconds,
        _SERIES.gauge(metrics.GIL_LONGEST_WAIT),
        empty=_NOBODY,
        steps=LONG_WAIT,
    )
    convoys = figure(
        "Convoy waits",
        "How often threads that do I/O queue behind threads that compute. Move the computing to "
        "another process, or to code that releases the GIL.",
        units.CountsPerSecond,
        _SERIES.rate(metrics.GIL_CONVOY_WAITS),
        empty=_NOBODY,
        steps=CONVOYS,
    )
    overhead = figure(
        "Highest cost of tracing",
        "What tracing takes from the process that it costs most. Above the overhead budget: the "
        "waits alone cost more than it, for there are very many of them.",
        units.PercentUnit,
        _SERIES.gauge(metrics.TARGET_OVERHEAD_RATIO),
        empty=_NOBODY,
        steps=BUDGET,
    )
    return Line(4, (traced, untraced, waiting, longest, convoys, overhead))


def _processes() -> Panel:
    # Over the whole time range: what cost much for a while stays at the top.
    waiting = _SERIES.rate(metrics.GIL_THREAD_WAIT, *PROCESS, span="$__range")
    quantile = _SERIES.quantile(0.99, metrics.GIL_WAIT, *PROCESS, span="$__range")
    convoys = _SERIES.rate(metrics.GIL_CONVOY_WAITS, *PROCESS, span="$__range")
    returns = _SERIES.count(metrics.GIL_WAIT, *PROCESS, span="$__range", after="blocking_call")
    drops = _SERIES.quantile(0.99, metrics.GIL_DROP_LATENCY, *PROCESS, span="$__range")
    held = share_held(_SERIES, *PROCESS, span="$__range")
    processes = _SERIES.gauge(metrics.TARGET_PROCESSES, *PROCESS, how="sum")
    return listing(
        "Services, over the time range",
        "The one at the top loses most, all of its processes together; with --per-process there is "
        "a row for each of these. A click on its name opens the Process dashboard, which "
        "says which roles lose it, to whom, and in which lines. GIL held: the mean of its "
        "processes. Convoys: the share of the waits "
        "after a blocking call that last for a switch interval or longer. 99 % of the waits and of "
        "the times until a holder drops the GIL are below their p99; PyPy and CPython 2.7 have no "
        "such times, for their threads do not ask. A process that began later "
        "counts as idle before.",
        {
            "process": "process",
            "pid": "pid",
            "instance": "agent",
            "pod": "pod",
            "namespace": "namespace",
            "cluster": "cluster",
        },
        (
            Column("threads waiting", waiting, units.Short, KEPT_WAITING),
            Column("processes", processes, units.Short),
            Column("GIL held", held, units.PercentUnit, BUSY),
            Column("p99 of waits", quantile, units.Seconds, LONG_WAIT),
            Column(
                "convoys",
                convoys.per(returns),
                units.PercentUnit,
                MANY_CONVOYS,
            ),
            Column("p99 of drops", drops, units.Seconds, SLOW_DROP),
        ),
        empty=_NOBODY,
        links={"process": _LOOK_CLOSER},
    )


def _containers() -> Panel:
    waiting = _SERIES.rate(metrics.GIL_THREAD_WAIT, "container_id", span="$__range")
    held = share_held(_SERIES, "container_id", span="$__range")
    quantile = _SERIES.quantile(0.99, metrics.GIL_WAIT, "container_id", span="$__range")
    convoys = _SERIES.rate(metrics.GIL_CONVOY_WAITS, "container_id", span="$__range")
    return listing(
        "Containers, over the time range",
        "The same for containers of Kubernetes, all processes of one together. Choose one at the "
        "top to see it alone. Names come from kube-state-metrics, which has to be scraped by the "
        "same Prometheus.",
        {name: name for name in reversed(NAMES)},
        (
            Column("threads waiting", named(waiting), units.Short, KEPT_WAITING),
            Column("GIL held", named(held, "max"), units.PercentUnit, BUSY),
            Column("p99 of waits", named(quantile, "max"), units.Seconds, LONG_WAIT),
            Column("convoy waits", named(convoys), units.CountsPerSecond),
        ),
        empty=_NO_NAMES,
    )


def _since_when() -> tuple[Line, ...]:
    waiting = curves(
        "Threads kept waiting, by service",
        "A step up tells since when: what was deployed, or what load came, then? Above 1, one "
        "thread fewer would do the same work.",
        units.Short,
        [Curve(_SERIES.rate(metrics.GIL_THREAD_WAIT, *PROCESS).top(_SHOWN), _LEGEND)],
        empty=_NOBODY,
    )
    held = curves(
        "Share of the time that the GIL is held, by service",
        "Near 1 more threads gain nothing: use more processes. Low, with threads that wait: "
        "check long holds and drop latency instead.",
        units.PercentUnit,
        [
            Curve(
                share_held(_SERIES, *PROCESS).top(_SHOWN),
                _LEGEND,
            )
        ],
        empty=_NOBODY,
        most=1,
    )
    convoys = curves(
        "Convoy waits a second, by service",
        "Threads that do I/O queue behind threads that compute. The Process dashboard names both.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.GIL_CONVOY_WAITS, *PROCESS).top(_SHOWN), _LEGEND)],
        empty=_NOBODY,
    )
    longest = curves(
        "Longest wait in flight, by service",
        "A line that rises steadily is one thread that waits all that time. Which call keeps the "
        "GIL is in the Process dashboard, under what is slow to drop it.",
        units.Seconds,
        [Curve(_SERIES.gauge(metrics.GIL_LONGEST_WAIT, *PROCESS).top(_SHOWN), _LEGEND)],
        empty=_NOBODY,
    )
    return (Line(8, (waiting, held)), Line(8, (convoys, longest)))


def _transactions() -> Line:
    in_vain = curves(
        "Threads that do wasted work, by service or log",
        "Transactions that are aborted and made again, of PyPy-STM or GCC's libitm. The STM "
        "dashboard says which lines collide.",
        units.Short,
        [
            Curve(
                _SERIES.seconds(metrics.STM_ABORT_COST, *PROCESS, "log").top(_SHOWN),
                f"{_LEGEND} {{{{log}}}}",
            )
        ],
        empty=_NO_TRANSACTIONS,
    )
    still = curves(
        "Threads that stand still, by service or log",
        "Transactions that wait for others, and threads that wait to begin one.",
        units.Short,
        [
            Curve(
                _SERIES.rate(metrics.STM_WAIT, *PROCESS, "log").top(_SHOWN),
                f"{_LEGEND} {{{{log}}}}",
            )
        ],
        empty=_NO_TRANSACTIONS,
    )
    return Line(8, (in_vain, still))
