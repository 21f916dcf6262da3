"""The switch interval: what a shorter one gives to the thread that waits, and what it costs."""

from collections.abc import Mapping, Sequence

from bench.experiments.cells import Cell, Experiment, Results
from bench.experiments.echo import Echo
from bench.experiments.pages import shown, spread_of
from bench.experiments.plots import Axis, Lines, Point, Series, draw_lines
from bench.experiments.runtimes import MAIN
from bench.markdown import NONE, table

__all__ = ["EXPERIMENT"]

_INTERVALS_MS = (0.1, 0.5, 1.0, 2.0, 5.0)
_SPINS = (1, 2)
_LIMIT_S = 1.0
_TAKES_S = 2.8

_TEXT = """\
The echo of [the convoy](convoy_udp.md) with other switch intervals: what can be changed about the GIL without a patch (`sys.setswitchinterval`).
The sources change priorities, with a patch that is lost; this is the cheap half of it.
The computing threads count what they compute, so the price of a short interval is in the table as well.

"""
_ADDS = """
## What gilscope adds

*mean wait* is how long the echo thread waited each time it had to: the interval, and then until the holder has noticed the request.
It says directly what the interval does; the client's latency has two such waits and its own time in it.
*switches* are those that the interpreter forced upon the holder, by gilscope's count: each is a chance for the echo thread, and a pause for the computing one.
"""


def _cell(interval_ms: float, spin: int, mode: str, limit_s: float) -> Cell:
    how = "traced" if mode else "untraced"
    return Cell(
        f"{interval_ms:g} ms/{spin}/{how}",
        {"interval_ms": interval_ms, "spin": spin, "mode": how},
        "two",
        limit_s + (_TAKES_S - _LIMIT_S if mode else 0.6),
        Echo(
            MAIN,
            "one" if limit_s < _LIMIT_S else "two",
            spin,
            mode=mode,
            interval_ms=interval_ms,
            limit_s=limit_s,
        ).measure,
        rounds=4,
    )


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        cell = _cell(0.5, 1, "contention", 0.2)
        return [Cell(cell.key, cell.axes, "one", cell.seconds, cell.measure)]
    return [
        _cell(interval_ms, spin, mode, _LIMIT_S)
        for interval_ms in _INTERVALS_MS
        for spin in _SPINS
        for mode in ("", "contention")
    ]


def _body(results: Results) -> str:
    rows = []
    for spin in _SPINS:
        for interval_ms in _INTERVALS_MS:
            here: dict[str, str | float] = {"spin": spin, "interval_ms": interval_ms}
            waits = sorted(_mean_waits_ms(results, here))
            rows.append(
                (
                    str(spin),
                    f"{interval_ms:g} ms",
                    shown(results, "p50_ms", 2, " ms", mode="untraced", **here),
                    shown(results, "p99_ms", 2, " ms", mode="untraced", **here),
                    shown(results, "tasks_per_s", 0, "/s", mode="untraced", **here),
                    shown(results, "tasks_per_s", 0, "/s", mode="traced", **here),
                    f"{waits[len(waits) // 2]:.2f} ms" if waits else NONE,
                    shown(results, "forced_switches", 0, mode="traced", **here),
                )
            )
    header = [
        "computing threads",
        "switch interval",
        "echo, half within",
        "99 % within",
        "computed",
        "the same, traced",
        "mean wait",
        "switches",
    ]
    return _TEXT + table(header, rows) + _ADDS


def _mean_waits_ms(results: Results, here: Mapping[str, str | float]) -> list[float]:
    return [
        1000 * each.figures["wait_s"] / each.figures["waits"]
        for each in results.measured(mode="traced", **here)
        if each.figures["waits"]
    ]


def _pictures(results: Results) -> Mapping[str, str]:
    series = []
    for spin in _SPINS:
        beside = f"beside {spin}"
        for figure, name in (("p50_ms", "echo, half within"), ("p99_ms", "echo, 99 % within")):
            points = [
                Point(
                    interval_ms,
                    *spread_of(
                        results, figure, spin=spin, interval_ms=interval_ms, mode="untraced"
                    ),
                )
                for interval_ms in _INTERVALS_MS
                if results.values(figure, spin=spin, interval_ms=interval_ms, mode="untraced")
            ]
            if points:
                series.append(Series(f"{name}, {beside}", points))
        waits = []
        for interval_ms in _INTERVALS_MS:
            means = sorted(_mean_waits_ms(results, {"spin": spin, "interval_ms": interval_ms}))
            if means:
                waits.append(Point(interval_ms, means[len(means) // 2], means[0], means[-1]))
        if waits:
            series.append(Series(f"mean wait for the GIL, {beside}", waits))
    if not series:
        return {}
    labels = [(each, f"{each:g}") for each in _INTERVALS_MS]
    picture = Lines(
        "What the switch interval does to an echo",
        f"{MAIN.title}, two CPUs, median and range of the rounds",
        Axis("switch interval, ms", is_log=True, labels=labels),
        Axis("ms", is_log=True),
        series,
    )
    return {"switch_interval.svg": draw_lines(picture)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    short = shown(results, "p99_ms", 1, " ms", spin=1, interval_ms=0.5, mode="untraced")
    usual = shown(results, "p99_ms", 1, " ms", spin=1, interval_ms=5.0, mode="untraced")
    return {"S26": (f"99 % of echoes within {usual} at 5 ms, {short} at 0.5 ms", "result lost")}


EXPERIMENT = Experiment(
    name="switch_interval",
    title="The switch interval",
    sources=("S24", "S26"),
    source={"priorities": "rules and result are lost"},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
