"""Transactions, of PyPy-STM's logs and of live processes: which collide, where, at what cost."""

from dashboards.generator.durations import durations
from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import KEPT_WAITING, LOST_WORK, SOME
from dashboards.generator.panels import Column, Curve, curves, figure, listing
from dashboards.generator.queries import PROCESS, Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics import table as metrics

__all__ = ["VARIABLES", "sections"]

VARIABLES = {
    "process": metrics.STM_TRANSACTIONS,
    "pid": metrics.STM_TRANSACTIONS,
    "log": metrics.STM_LOG_BYTES,
}

_SERIES = Scope(tuple(VARIABLES))
_LEGEND = "{{log}}"
_SHOWN = 10
_NO_LOG = "No such STM log is followed. Is gilscope serve running with --stm-log?"
_NOTHING = "Neither a process with transactions is traced nor an STM log followed"
_NO_TRANSACTIONS = "No transaction has ended in this time"
_NO_CONFLICTS = "No transactions have collided in this time"


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("At this moment", (_figures(),)),
        Section("Which lines collide", (_pairs(), _kinds())),
        Section("Transactions", _transactions()),
        Section("Standing still, and collecting garbage", (_pauses(),)),
        Section("How much is seen", (_coverage(),)),
    ]


def _figures() -> Line:
    ended = _SERIES.rate(metrics.STM_TRANSACTIONS)
    aborted = _SERIES.rate(metrics.STM_TRANSACTIONS, outcome="abort")
    return Line(
        4,
        (
            figure(
                "Transactions a second",
                "Those that have ended, however. 0 while the program runs: it has not flushed its "
                "log, or begins none.",
                units.CountsPerSecond,
                ended,
                empty=_NOTHING,
            ),
            figure(
                "Aborted",
                "Share of the transactions that are aborted and done again. What they cost is "
                "beside this, and which lines abort them below.",
                units.PercentUnit,
                aborted.per(ended),
                empty=_NO_TRANSACTIONS,
                steps=LOST_WORK,
            ),
            figure(
                "Threads that do wasted work",
                "How many, at any moment. From 1 on, one thread fewer would do the same work.",
                units.Short,
                _SERIES.seconds(metrics.STM_ABORT_COST),
                empty=_NOTHING,
                steps=KEPT_WAITING,
            ),
            figure(
                "Threads that stand still",
                "How many, at any moment, in a transaction or not. What they wait for is below.",
                units.Short,
                _SERIES.rate(metrics.STM_WAIT),
                empty=_NOTHING,
                steps=KEPT_WAITING,
            ),
            figure(
                "Not read yet",
                "Of the log that is furthest behind. Should come back to 0: else gilscope cannot "
                "keep up.",
                units.BytesIEC,
                _SERIES.gauge(metrics.STM_LOG_LAG),
                empty=_NO_LOG,
            ),
            figure(
                "Errors",
                "What could not be opened or understood, in the time range. gilscope's own page "
                "says where.",
                units.Short,
                _SERIES.gain(metrics.STM_LOG_ERRORS, span="$__range"),
                empty="None",
                steps=SOME,
            ),
        ),
    )


def _pairs() -> Line:
    labels = {"site": "place", "other_site": "other place", "kind": "kind"}
    conflicts = _SERIES.rate(metrics.STM_CONFLICTS, *labels, span="$__range")
    lost = _SERIES.rate(metrics.STM_SITE_ABORT_COST, *labels, span="$__range")
    paused = _SERIES.rate(metrics.STM_SITE_PAUSE, *labels, span="$__range")
    pairs = listing(
        "Places, over the time range",
        "Begin with the first row: let the two places touch different objects, or make the "
        "transaction shorter that is aborted. Places are known from logs alone: let PyPy-STM write "
        "one.",
        labels,
        (
            Column("threads that do wasted work", lost, units.Short, KEPT_WAITING),
            Column("threads that stand still", paused, units.Short, KEPT_WAITING),
            Column("conflicts", conflicts, units.CountsPerSecond),
        ),
        empty=_NO_CONFLICTS,
    )
    return Line(9, (pairs,))


def _kinds() -> Line:
    lost = curves(
        "Threads that do wasted work, by kind",
        "What aborts them. An inevitable transaction always wins: keep I/O out of those that "
        "others collide with.",
        units.Short,
        [Curve(_SERIES.rate(metrics.STM_SITE_ABORT_COST, "kind"), "{{kind}}")],
        empty=_NO_CONFLICTS,
    )
    paused = curves(
        "Threads that stand still because of a conflict, by kind",
        "Transactions that wait for another one to end, as for an inevitable one.",
        units.Short,
        [Curve(_SERIES.rate(metrics.STM_SITE_PAUSE, "kind"), "{{kind}}")],
        empty=_NO_CONFLICTS,
    )
    conflicts = curves(
        "Conflicts a second, by kind",
        "Many that cost little are no harm; the two graphs beside this say what they cost.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.STM_CONFLICTS, "kind"), "{{kind}}")],
        empty=_NO_CONFLICTS,
    )
    return Line(8, (lost, paused, conflicts))


def _transactions() -> tuple[Line, ...]:
    outcomes = curves(
        "Transactions a second, by outcome",
        "Aborts that rise with the load while commits do not: more threads gain nothing.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.STM_TRANSACTIONS, "outcome"), "{{outcome}}")],
        empty=_NO_TRANSACTIONS,
    )
    committed = durations(
        _SERIES,
        "Committed transactions",
        "Long ones are those that collide. What lasts for long and touches what others write "
        "belongs into a transaction of its own.",
        metrics.STM_TRANSACTION,
        _NO_TRANSACTIONS,
    )
    aborted = durations(
        _SERIES,
        "Aborted transactions",
        "How long they had run for nothing. Few that are long cost as much as many short ones.",
        metrics.STM_ABORT_COST,
        "No transaction was aborted in this time",
    )
    inevitable = curves(
        "Inevitable transactions a second, by reason",
        "Only one of a process can be inevitable at a time, so threads queue for it. Keep what the "
        "reason names out of transactions that others collide with.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.STM_INEVITABLE, "reason").top(_SHOWN), "{{reason}}")],
        empty="No live process has asked for one in this time",
    )
    restarts = curves(
        "Restarts of libitm a second, by reason",
        "LOCKED and VALIDATE are conflicts: let threads touch different memory, or less of it in "
        "one transaction.",
        units.CountsPerSecond,
        [Curve(_SERIES.rate(metrics.STM_RESTARTS, "reason"), "{{reason}}")],
        empty="No process with GCC's libitm has restarted one",
    )
    return (Line(8, (outcomes, inevitable, restarts)), committed, aborted)


def _pauses() -> Line:
    waits = curves(
        "Threads that stand still, by what they wait for",
        "WAIT_FREE_SEGMENT: more threads than PyPy-STM has segments, 4 or 8; start fewer.",
        units.Short,
        [Curve(_SERIES.rate(metrics.STM_WAIT, "kind"), "{{kind}}")],
        empty="No thread stood still in this time",
    )
    mean = curves(
        "Mean wait in live processes, by what for",
        "What waits for an inevitable transaction waits for its end: make it shorter.",
        units.Seconds,
        [
            Curve(
                _SERIES.rate(metrics.STM_WAIT, *PROCESS, "kind").per(
                    _SERIES.rate(metrics.STM_WAITS, *PROCESS, "kind")
                ),
                "{{kind}}, {{process}} {{pid}}",
            )
        ],
        empty="No live process has waited in this time",
    )
    collections = curves(
        "Threads that collect garbage, by generation",
        "It is part of the transactions' run time: much of it makes them long, and collide.",
        units.Short,
        [Curve(_SERIES.rate(metrics.STM_GC, "generation"), "{{generation}}")],
        empty="No collections in this time",
    )
    return Line(8, (waits, mean, collections))


def _coverage() -> Line:
    read = curves(
        "Read a second, by log",
        "How fast a program writes. That it stands still may mean that the program does.",
        units.BytesPerSecondIEC,
        [Curve(_SERIES.rate(metrics.STM_LOG_BYTES, "log"), _LEGEND)],
        empty=_NO_LOG,
    )
    behind = curves(
        "Not read yet, by log",
        "Should come back to 0. Steady growth: gilscope cannot keep up, and figures are late.",
        units.BytesIEC,
        [Curve(_SERIES.gauge(metrics.STM_LOG_LAG, "log"), _LEGEND)],
        empty=_NO_LOG,
    )
    errors = curves(
        "Errors, by reason",
        "A cut_record where a process was killed is normal. gilscope-serve(8) explains each "
        "reason.",
        units.Short,
        [Curve(_SERIES.gain(metrics.STM_LOG_ERRORS, "reason"), "{{reason}}")],
        empty="None",
    )
    observed = curves(
        "Share of the time in which live transactions are seen",
        "Below 1, seeing all of them would cost more than the overhead budget: all figures of "
        "that process are of windows at random, and so lower than the true ones. Divide them by "
        "this share, as the alerts do.",
        units.PercentUnit,
        [
            Curve(
                _SERIES.rate(metrics.STM_OBSERVED, *PROCESS, window="full").per(
                    _SERIES.rate(metrics.STM_OBSERVED, *PROCESS, window="all")
                ),
                "{{process}} {{pid}}",
            )
        ],
        empty="No live process with transactions is traced",
    )
    return Line(8, (observed, read, behind, errors))
