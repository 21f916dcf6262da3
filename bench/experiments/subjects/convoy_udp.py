"""The convoy: an echo of datagrams beside threads that compute, on one CPU and on several."""

import os
from collections.abc import Iterator, Mapping, Sequence

from bench.experiments.cells import Cell, Experiment, Results
from bench.experiments.echo import BYTES, MESSAGES, Echo
from bench.experiments.gate import cpu_sets
from bench.experiments.pages import shown, spread_of
from bench.experiments.plots import Axis, Lines, Mark, Point, Series, draw_lines
from bench.experiments.runtimes import MAIN, RUNTIMES
from bench.markdown import NONE, table

__all__ = ["EXPERIMENT"]

_SPINS = (0, 1, 2, 4)
_LIMIT_S = 2.0
_QUICK_LIMIT_S = 0.2
_START_S = 0.6
_TRACED_S = 1.2
_INTERVAL_MS = 5.0
_SET_TITLES = {"one": "one CPU", "two": "two CPUs", "all": "all CPUs"}

_TEXT = f"""\
A thread echoes datagrams of {BYTES} bytes while others compute digits of pi, and a client in \
another process sends {MESSAGES} of them, each when the one before has come back.
In February 2010 this showed the convoy of the new GIL (issue 7946): beside one computing thread \
"just barely over 1MB/sec", beside two "much worse".
With all but one CPU switched off the result was "inexplicable"; the pictures of the three results are lost.
Here a client stops after {_LIMIT_S:g} seconds even if not all have come back.

"""
_WHY = """
## Why, as gilscope sees it

Each echo has two calls that release the GIL, `recvfrom` and `sendto`, and after each the echo thread wants it back.
On two free CPUs the computing thread acquires it in the microseconds for which it is free, and keeps it until the echo thread has waited for the switch interval of 5 ms and asks for it.
On one CPU the computing thread cannot run in these microseconds, because the echo thread is running: nobody acquires the GIL meanwhile, and the call costs nothing.
That is the result that the source could not explain: a second CPU is what makes the convoy.
It also means that the same two CPUs, busy with something else, show no convoy.

"""
_BOOKS = """
## Do the books balance?

*lost* is what the client lost by its own clock: its time less that of as many echoes without a computing thread.
*waited* is what gilscope says that the echo thread waited for the GIL; the two know nothing of each other.
On one CPU it may lose more than that: server and client take turns there, and what the echo thread waits for without wanting the GIL is the CPU.
*of acquires* is the base rate: how many of all acquires of the GIL by the echo thread had to wait, from a cell in full mode.

"""
_OTHERS = """
## Other runtimes

On two CPUs beside one computing thread.
CPython 2.7 gives the GIL away every 100 bytecodes, and mostly has it back before the echo thread runs, which was woken for nothing.
PyPy does so after 10,000 bytecodes, and nobody can ask it for more: its convoy is the longest.

"""


def _cell(key: str, cpus: str, spin: int, mode: str, limit_s: float) -> Cell:
    runtime = next(each for each in RUNTIMES if each.key == key)
    takes_s = _START_S + (limit_s if spin else 0.0) + (_TRACED_S if mode else 0.0)
    how = {"": "untraced", "contention": "traced"}.get(mode, mode)
    return Cell(
        f"{key}/{cpus}/{spin}/{how}",
        {"runtime": key, "cpus": cpus, "spin": spin, "mode": how},
        cpus,
        takes_s,
        Echo(runtime, cpus, spin, mode=mode, limit_s=limit_s).measure,
        rounds=5 if key == MAIN.key else 3,
    )


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        limit_s = _QUICK_LIMIT_S
        quick = [("one", 0, "contention"), ("one", 1, "full")]
        return [_cell(MAIN.key, cpus, spin, mode, limit_s) for cpus, spin, mode in quick]
    cells = []
    sets = cpu_sets(os.sched_getaffinity(0))
    for cpus in sets:
        for spin in _SPINS:
            cells += [_cell(MAIN.key, cpus, spin, mode, _LIMIT_S) for mode in ("", "contention")]
    widest = "two" if "two" in sets else "one"
    cells.append(_cell(MAIN.key, widest, 1, "full", _LIMIT_S))
    for runtime in RUNTIMES[1:]:
        cells += [_cell(runtime.key, widest, 0, "", _LIMIT_S)]
        cells += [_cell(runtime.key, widest, 1, mode, _LIMIT_S) for mode in ("", "contention")]
    return cells


def _body(results: Results) -> str:
    speeds = []
    for cpus in _sets(results):
        for spin in _SPINS:
            here: dict[str, str | float] = {"runtime": MAIN.key, "cpus": cpus, "spin": spin}
            speeds.append(
                (
                    _SET_TITLES[cpus],
                    str(spin),
                    _source(cpus, spin),
                    shown(results, "mb_per_s", 2, " MB/s", mode="untraced", **here),
                    shown(results, "mb_per_s", 2, " MB/s", mode="traced", **here),
                    shown(results, "p50_ms", 3, " ms", mode="untraced", **here),
                    shown(results, "p99_ms", 3, " ms", mode="untraced", **here),
                )
            )
    header = [
        "on",
        "computing threads",
        "the source",
        "ours",
        "the same, traced",
        "half within",
        "99 % within",
    ]
    parts = [_TEXT + table(header, speeds), _WHY]
    parts.append(
        _BOOKS
        + table(
            [
                "on",
                "computing threads",
                "lost",
                "waited",
                "waited by lost",
                "convoy waits held below `spin`",
                "of acquires",
            ],
            _books(results),
        )
    )
    parts.append(
        _OTHERS
        + table(
            [
                *("runtime", "nothing beside", "one thread beside", "the same, traced"),
                *("a wait of the echo thread", "convoy waits", "failed wake-ups"),
            ],
            _others(results),
        )
    )
    return "".join(parts)


def _sets(results: Results) -> list[str]:
    seen = {str(each.axes["cpus"]) for each in results.outcomes}
    return [each for each in _SET_TITLES if each in seen] or ["one", "two"]


def _source(cpus: str, spin: int) -> str:
    if cpus == "one":
        return "not explained" if spin else NONE
    return {1: "just over 1 MB/s", 2: "much worse"}.get(spin, NONE)


def _books(results: Results) -> Iterator[tuple[str, ...]]:
    for cpus in _sets(results):
        for spin in _SPINS[1:]:
            here: dict[str, str | float] = {"runtime": MAIN.key, "cpus": cpus, "spin": spin}
            lost_s = _lost_s(results, cpus, spin)
            waited_s = results.values("wait_s", mode="traced", **here)
            ratio = [
                waited / lost for waited, lost in zip(waited_s, lost_s, strict=False) if lost > 0
            ]
            yield (
                _SET_TITLES[cpus],
                str(spin),
                f"{lost_s[0]:.3f} s" if lost_s else NONE,
                f"{waited_s[0]:.3f} s" if waited_s else NONE,
                f"{sorted(ratio)[len(ratio) // 2]:.3f}" if ratio else NONE,
                shown(results, "held_by_spin", 3, mode="traced", **here),
                _base_rate(results, cpus, spin),
            )


def _lost_s(results: Results, cpus: str, spin: int) -> list[float]:
    """Return for each round what the client lost, by its own clock."""
    here = {"runtime": MAIN.key, "cpus": cpus, "mode": "traced"}
    alone = {
        each.round: each.figures["client_s"] / each.figures["echoes"]
        for each in results.measured(spin=0, **here)
    }
    return [
        each.figures["client_s"] - each.figures["echoes"] * alone[each.round]
        for each in results.measured(spin=spin, **here)
        if each.round in alone
    ]


def _base_rate(results: Results, cpus: str, spin: int) -> str:
    here: dict[str, str | float] = {"runtime": MAIN.key, "cpus": cpus, "spin": spin}
    waits = sum(results.values("waits", mode="full", **here))
    takes = sum(results.values("takes", mode="full", **here))
    return f"{100 * waits / takes:.1f} %, {waits:.0f} of {takes:.0f}" if takes else NONE


def _others(results: Results) -> Iterator[tuple[str, ...]]:
    for runtime in RUNTIMES:
        here: dict[str, str | float] = {"runtime": runtime.key, "cpus": _sets(results)[-1]}
        traced: dict[str, str | float] = {**here, "spin": 1, "mode": "traced"}
        yield (
            runtime.title,
            shown(results, "mb_per_s", 1, " MB/s", spin=0, mode="untraced", **here),
            shown(results, "mb_per_s", 2, " MB/s", spin=1, mode="untraced", **here),
            shown(results, "mb_per_s", 2, " MB/s", **traced),
            shown(results, "mean_wait_ms", 1, " ms", **traced),
            shown(results, "convoy_waits", 0, **traced),
            shown(results, "failed_wakeups", 0, **traced),
        )


def _pictures(results: Results) -> Mapping[str, str]:
    speeds, times = [], []
    for cpus in _sets(results):
        here = {"runtime": MAIN.key, "cpus": cpus, "mode": "untraced"}
        speed = _points(results, "mb_per_s", here)
        if speed:
            speeds.append(Series(f"{_SET_TITLES[cpus]}, ours", speed))
        for figure, name in (("p50_ms", "half within"), ("p99_ms", "99 % within")):
            points = _points(results, figure, here)
            if points:
                times.append(Series(f"{_SET_TITLES[cpus]}, {name}", points))
    if not speeds:
        return {}
    speeds.append(Series("the source, two CPUs", [Point(1, 1.0)], is_source=True))
    threads = Axis("threads that compute", labels=[(each, str(each)) for each in _SPINS])
    title = f"echoes of {BYTES} bytes, {MAIN.title}, median and range of the rounds"
    return {
        "convoy_udp-speed.svg": draw_lines(
            Lines("How fast datagrams come back", title, threads, Axis("MB/s", is_log=True), speeds)
        ),
        "convoy_udp-latency.svg": draw_lines(
            Lines(
                "How long an echo takes",
                title,
                threads,
                Axis("ms", is_log=True),
                times,
                [Mark("switch interval, 5 ms", _INTERVAL_MS)],
            )
        ),
    }


def _points(results: Results, figure: str, here: Mapping[str, str | float]) -> list[Point]:
    return [
        Point(spin, *spread_of(results, figure, spin=spin, **here))
        for spin in _SPINS
        if results.values(figure, spin=spin, **here)
    ]


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    widest = _sets(results)[-1]
    here = {"runtime": MAIN.key, "mode": "untraced"}
    medians = [
        spread_of(results, "mb_per_s", cpus=widest, spin=spin, **here)[0]
        for spin in _SPINS
        if results.values("mb_per_s", cpus=widest, spin=spin, **here)
    ]
    one = results.values("mb_per_s", cpus="one", spin=1, **here)
    if len(medians) < len(_SPINS) or not one:
        return {}
    is_same = medians[0] > medians[1] > medians[2]
    single = spread_of(results, "mb_per_s", cpus="one", spin=1, **here)[0]
    text = f"{medians[1]:.2f} MB/s, {medians[2]:.2f} MB/s; one CPU {single:.0f} MB/s"
    share = shown(results, "held_by_spin", 2, runtime=MAIN.key, cpus=widest, spin=1, mode="traced")
    return {
        "S24": (text, "yes" if is_same else "no"),
        "S25": (f"share of convoy waits held by the computing thread: {share}", "yes"),
    }


EXPERIMENT = Experiment(
    name="convoy_udp",
    title="The convoy, on one CPU and on two",
    sources=("S24", "S25"),
    source={
        "one_thread_two_cpus": "barely over 1 MB/s",
        "two_threads": "much worse",
        "one_cpu": "inexplicable",
    },
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
