"""The agents: what they trace, whether that can be trusted, and what it costs."""

from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import BUDGET, SOME
from dashboards.generator.panels import Column, Curve, Panel, curves, figure, listing
from dashboards.generator.queries import PROCESS, Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family

__all__ = ["VARIABLES", "sections"]

VARIABLES: dict[str, Family] = {}

_SERIES = Scope(tuple(VARIABLES))
_AGENT = ("cluster", "namespace", "pod", "instance")
_LEGEND = "{{instance}}"
_SHOWN = 10
_NO_AGENT = "No agent is scraped"
_NO_TARGET = "No traced process"


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("Agents", (_figures(), Line(7, (_agents(),)))),
        Section("What is traced", (_targets(),)),
        Section("What is lost", _losses()),
        Section("What it costs the traced processes", (_target_costs(),)),
        Section("What the agents take themselves", (_own_costs(), _tables())),
    ]


def _figures() -> Line:
    return Line(
        4,
        (
            figure(
                "Worst scrape",
                "0: an agent cannot read the kernel's maps, and figures about processes are "
                "missing. Its log says why.",
                units.Short,
                _SERIES.gauge(metrics.SCRAPE_SUCCESS, how="min"),
                empty=_NO_AGENT,
            ),
            figure(
                "Processes traced",
                "Where one is missing, `gilscope doctor -p PID` on its host says why.",
                units.Short,
                _SERIES.gauge(metrics.TARGETS, how="sum", state="traced"),
                empty=_NO_AGENT,
            ),
            figure(
                "Processes refused",
                "Pythons that were found and cannot be traced. The agent's own page says why, and "
                "what fixes it.",
                units.Short,
                _SERIES.gauge(metrics.TARGETS, how="sum", state="refused"),
                empty=_NO_AGENT,
            ),
            figure(
                "Probes not trusted",
                "Processes without figures, because their probes failed a check. This is worth a "
                "report.",
                units.Short,
                _SERIES.gauge(metrics.TARGETS, how="sum", state="invalid"),
                empty=_NO_AGENT,
                steps=SOME,
            ),
            figure(
                "Runs that the kernel left out",
                "Events that were not counted, in the time range. Anything but 0 is "
                "worth a report.",
                units.Short,
                _SERIES.gain(metrics.AGENT_BPF_MISSES, span="$__range"),
                empty=_NO_AGENT,
                steps=SOME,
            ),
            figure(
                "Highest cost of tracing",
                "In the process that it costs most. Lower --overhead-budget, or check its waits: "
                "these are always counted.",
                units.PercentUnit,
                _SERIES.gauge(metrics.TARGET_OVERHEAD_RATIO),
                empty=_NO_TARGET,
                steps=BUDGET,
            ),
        ),
    )


def _agents() -> Panel:
    return listing(
        "Agents",
        "More than one version: update the others. Memory that grows steadily is a leak, and worth "
        "a report.",
        {"instance": "agent", "pod": "pod", "namespace": "namespace", "cluster": "cluster"},
        (
            Column("CPU", _SERIES.rate(metrics.AGENT_CPU, *_AGENT), units.PercentUnit),
            Column("memory", _SERIES.gauge(metrics.AGENT_RESIDENT, *_AGENT), units.BytesIEC),
            Column("of its own", _SERIES.gauge(metrics.AGENT_PRIVATE, *_AGENT), units.BytesIEC),
            Column("scrape", _SERIES.gauge(metrics.SCRAPE_DURATION, *_AGENT), units.Seconds),
            Column("traps a second", _SERIES.rate(metrics.AGENT_TRAPS, *_AGENT), units.Short),
        ),
        empty=_NO_AGENT,
    )


def _targets() -> Line:
    states = curves(
        "Processes, by state",
        "traced: with figures. invalid: the probes failed a check. refused: cannot be traced.",
        units.Short,
        [Curve(_SERIES.gauge(metrics.TARGETS, "state", how="sum"), "{{state}}")],
        empty=_NO_AGENT,
    )
    methods = curves(
        "Services with valid probes, by method",
        "libc is the fallback, which sees no holds and few causes of waits: another build of that "
        "Python may do better.",
        units.Short,
        [Curve(_SERIES.gauge(metrics.PROBE_VALID, "method", how="sum"), "{{method}}")],
        empty=_NO_TARGET,
    )
    runtimes = curves(
        "Services with valid probes, by runtime",
        "Which versions lose the most tells whether another one would help.",
        units.Short,
        [
            Curve(
                _SERIES.gauge(metrics.TARGET_INFO, "runtime", "version", how="sum"),
                "{{runtime}} {{version}}",
            )
        ],
        empty=_NO_TARGET,
    )
    versions = curves(
        "Agents, by version",
        "Two lines for long: an update is stuck.",
        units.Short,
        [
            Curve(
                _SERIES.gauge(metrics.BUILD_INFO, "version", "bcc_version", how="sum"),
                "gilscope {{version}}, BCC {{bcc_version}}",
            )
        ],
        empty=_NO_AGENT,
    )
    return Line(7, (states, methods, runtimes, versions))


def _losses() -> tuple[Line, ...]:
    reasons = curves(
        "Events lost since the attachment, by reason",
        "A few began_unseen when a process is attached and abandoned when one ends are normal. "
        "gilscope-serve(8) explains each reason.",
        units.Short,
        [Curve(_SERIES.total(metrics.LOST_EVENTS, "reason"), "{{reason}}")],
        empty="Nothing was lost",
    )
    processes = curves(
        "Events lost since the attachment, by service",
        "Where it is always the same process, its figures are a little too low.",
        units.Short,
        [
            Curve(
                _SERIES.total(metrics.LOST_EVENTS, *PROCESS).top(_SHOWN),
                "{{process}} {{pid}} {{instance}}",
            )
        ],
        empty="Nothing was lost",
    )
    left_out = curves(
        "Runs that the kernel left out, by agent",
        "Should stay 0: each one is an event that was not counted.",
        units.Short,
        [Curve(_SERIES.gain(metrics.AGENT_BPF_MISSES, *_AGENT), _LEGEND)],
        empty=_NO_AGENT,
    )
    return (Line(8, (reasons, processes, left_out)),)


def _target_costs() -> Line:
    shares = curves(
        "Estimated cost, by service",
        "By the CPU time that a process uses itself. In auto mode it stays below the overhead "
        "budget, unless its waits alone cost more.",
        units.PercentUnit,
        [
            Curve(
                _SERIES.gauge(metrics.TARGET_OVERHEAD_RATIO, *PROCESS).top(_SHOWN),
                "{{process}} {{pid}} {{instance}}",
            )
        ],
        empty=_NO_TARGET,
    )
    cores = curves(
        "Cores that tracing takes, by agent",
        "CPU time of all traced processes of a host that went into probes.",
        units.Short,
        [Curve(_SERIES.rate(metrics.TARGET_OVERHEAD, "instance"), _LEGEND)],
        empty=_NO_TARGET,
    )
    trap = curves(
        "What a trap costs",
        "measured: true where it was measured at the start. false: a high value is assumed, so "
        "windows are shorter than they need be; the log says why.",
        units.Seconds,
        [
            Curve(
                _SERIES.gauge(metrics.AGENT_TRAP_COST, "site", "measured"),
                "{{site}}, measured: {{measured}}",
            )
        ],
        empty=_NO_AGENT,
    )
    return Line(8, (shares, cores, trap))


def _own_costs() -> Line:
    cpu = curves(
        "CPU of the agents",
        "In cores. What is sampling goes into the estimate of held time, and is part of it.",
        units.PercentUnit,
        [
            Curve(_SERIES.rate(metrics.AGENT_CPU, *_AGENT), _LEGEND),
            Curve(_SERIES.rate(metrics.AGENT_SAMPLING, *_AGENT), f"{_LEGEND}, sampling"),
        ],
        empty=_NO_AGENT,
    )
    memory = curves(
        "Memory of the agents",
        "Steady but for new targets. Steady growth is a leak, and worth a report.",
        units.BytesIEC,
        [
            Curve(_SERIES.gauge(metrics.AGENT_RESIDENT, *_AGENT), f"{_LEGEND}, in RAM"),
            Curve(_SERIES.gauge(metrics.AGENT_PRIVATE, *_AGENT), f"{_LEGEND}, of its own"),
        ],
        empty=_NO_AGENT,
    )
    scrapes = curves(
        "Duration of a scrape",
        "Milliseconds. Much longer: the host lacks CPU, or very many processes are traced.",
        units.Seconds,
        [Curve(_SERIES.gauge(metrics.SCRAPE_DURATION, *_AGENT), _LEGEND)],
        empty=_NO_AGENT,
    )
    return Line(8, (cpu, memory, scrapes))


def _tables() -> Line:
    entries = _SERIES.gauge(metrics.AGENT_TABLE_ENTRIES, "instance", "table")
    capacity = _SERIES.gauge(metrics.AGENT_TABLE_CAPACITY, "instance", "table")
    full = curves(
        "How full the kernel's tables are",
        "What finds no room is lost as table_full. Near 100 %: trace fewer processes with one "
        "agent.",
        units.PercentUnit,
        [Curve(entries.per(capacity).top(_SHOWN), f"{{{{table}}}} {_LEGEND}")],
        empty=_NO_AGENT,
        most=1,
    )
    memory = curves(
        "Kernel memory of the tables",
        "Memory of gilscope that is in no process. Before Linux 6.4 what it takes when full.",
        units.BytesIEC,
        [Curve(_SERIES.gauge(metrics.AGENT_TABLE_BYTES, "instance", how="sum"), _LEGEND)],
        empty=_NO_AGENT,
    )
    return Line(8, (full, memory))
