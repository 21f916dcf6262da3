"""Makes the pictures of the page from the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.conditions import AGAIN, AUTO, BASELINE, FULL, GILSCOPE, Condition
from bench.measurement import Results
from bench.ratios import latency_ratios, noise, overheads, ratios, spread
from bench.svg import Bar, Chart, Group, Kind, draw
from bench.tables import LATENCIES, measured_conditions
from bench.works import CPU, FIGHT, HTTP, MIXED, TIGHT, Work

__all__ = ["Picture", "draw_pictures"]

_PER_CENT = 100
_AROUND = "Median and range over the rounds; the grey band is the noise floor."


@dataclass(frozen=True, slots=True)
class Picture:
    """A file, and what it says to those who cannot see it."""

    name: str
    svg: str
    alt: str


def draw_pictures(results: Results) -> tuple[Picture, Picture, Picture, Picture]:
    """Return the pictures about the tight loop, the rest, latency, and the self-report."""
    return _tight(results), _others(results), _latency(results), _report(results)


def _tight(results: Results) -> Picture:
    bars = [
        _bar(condition, found)
        for condition in _compared(results)
        if (found := ratios(results.runs, TIGHT, condition))
    ]
    chart = Chart(
        "CPU time of the tight loop, traced by untraced",
        "1 is a tool that costs nothing. Median and range over the rounds.",
        [Group("", bars, mark=1.0)],
        digits=2,
    )
    named = ", ".join(f"{bar.label} {bar.value:.2f}" for bar in bars)
    return _picture("overhead-tight.svg", chart, f"{named}.")


def _others(results: Results) -> Picture:
    groups = [
        _added(results, work.title, work, partial(ratios, results.runs, work))
        for work in (MIXED, FIGHT, CPU, HTTP)
    ]
    chart = Chart(
        "CPU time added to programs that do more than release the GIL",
        _AROUND,
        groups,
        digits=1,
        unit=" %",
    )
    return _picture("overhead-others.svg", chart, _highest(groups))


def _latency(results: Results) -> Picture:
    groups = [
        _added(
            results,
            title,
            HTTP,
            partial(latency_ratios, results.runs, HTTP, latency_ns=latency_ns),
        )
        for title, latency_ns in LATENCIES
    ]
    chart = Chart(
        "Latency added for the clients of a saturated HTTP server",
        _AROUND,
        groups,
        digits=1,
        unit=" %",
    )
    return _picture("overhead-latency.svg", chart, _highest(groups))


def _report(results: Results) -> Picture:
    groups = []
    for condition in (*AUTO, FULL):
        found = overheads(results.runs, TIGHT, condition)
        if found:
            bars = [
                _spread_bar("measured", [_PER_CENT * each.measured for each in found], "peer"),
                _spread_bar(
                    "self-reported", [_PER_CENT * each.estimated for each in found], "ours"
                ),
            ]
            if condition.budget is None:
                # What has no budget costs far more than the noise.
                groups.append(Group(condition.title, bars))
            else:
                floor = _PER_CENT * noise(results.runs, TIGHT)
                mark = _PER_CENT * condition.budget
                groups.append(Group(condition.title, bars, (-floor, floor), mark))
    chart = Chart(
        "CPU time added to the tight loop, measured and as gilscope reports it",
        f"{_AROUND} Dashed: the budget.",
        groups,
        digits=2,
        unit=" %",
        own_scales=True,
    )
    named = "; ".join(
        f"{group.title}: {', '.join(f'{bar.label} {bar.value:.2f} %' for bar in group.bars)}"
        for group in groups
    )
    return _picture("overhead-self-report.svg", chart, f"{named}.")


def _added(
    results: Results, title: str, work: Work, ratios_of: Callable[[Condition], list[float]]
) -> Group:
    """Return what each condition adds, in per cent, with the noise behind it."""
    bars = []
    band = None
    for condition in _compared(results):
        found = [_PER_CENT * (ratio - 1) for ratio in ratios_of(condition)]
        if found and work.is_for(condition):
            bars.append(_bar(condition, found))
        if found and condition is AGAIN:
            floor = max(map(abs, found))
            band = (-floor, floor)
    return Group(title, bars, band)


def _bar(condition: Condition, found: Sequence[float]) -> Bar:
    kind: Kind = "noise" if condition is AGAIN else "ours" if condition in GILSCOPE else "peer"
    label = condition.title.partition(" (")[0]
    return _spread_bar(label, found, kind)


def _spread_bar(label: str, found: Sequence[float], kind: Kind) -> Bar:
    across = spread(found)
    return Bar(label, across.median, across.low, across.high, kind)


def _compared(results: Results) -> list[Condition]:
    return [each for each in measured_conditions(results) if each is not BASELINE]


def _highest(groups: Sequence[Group]) -> str:
    named = []
    for group in groups:
        tools = [bar for bar in group.bars if bar.kind != "noise"]
        if tools:
            most = max(tools, key=lambda bar: bar.value)
            named.append(f"{group.title}: at most {most.value:.1f} % ({most.label})")
    return f"{'; '.join(named)}."


def _picture(name: str, chart: Chart, text: str) -> Picture:
    return Picture(name, draw(chart), f"Bar chart: {chart.title}. {text}".removesuffix(" ."))
