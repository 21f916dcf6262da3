"""An event loop in each thread, with and without a GIL; a dict of its own or one for all."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.plots import Axis, Lines, Point, Series, draw_lines
from bench.experiments.processes import program, set_of
from bench.experiments.runtimes import FREE_THREADED, TWIN, Runtime, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table

__all__ = ["EXPERIMENT"]

_RUNTIMES = (TWIN, FREE_THREADED)
_DICTS = {"own": "a dict for each loop", "shared": "one dict for all"}
_LOOPS = (1, 2, 4)
_SECONDS = 1.2
_SOURCE = {"PyPy-STM": (9.3, 16.4, 20.4, 24.2)}
"""Requests a second with 1 to 4 threads."""

_TEXT = """\
The source has Tornado's event loop run its callbacks as transactions in several threads (S1), and shows what that gives with 1 to 4 of them (S6); another one asks what CPython could do in the short term (S23).
Today's successor is an event loop in each thread of a free-threaded CPython.
Each loop here answers requests of eight connections within the same thread and counts them in a dict: one of its own, or the same for all loops, in which each writes to keys of its own.
The number of answers must be that of the counts in the end.

"""
_ADDS = """
## What gilscope adds

With a GIL another loop answers no request faster: *held* is the share of the time for which the GIL was held, and *threads waiting* how many threads waited for it on average.
Without one, threads wait for the locks of single objects, such as that of the dict that all write to.
gilscope traces these with [`--locks`](../locks.md), which is not done here yet: what the shared dict costs is the difference between its rows, and where that time goes is *untraced*.

"""


@dataclass(frozen=True, slots=True)
class _Server:
    runtime: Runtime
    kind: str
    loops: int
    is_traced: bool = False
    cpus: str = "two"
    seconds: float = _SECONDS

    def cell(self) -> Cell:
        how = "traced" if self.is_traced else "untraced"
        axes: dict[str, str | float] = {
            "runtime": self.runtime.key,
            "dict": self.kind,
            "loops": self.loops,
            "mode": how,
        }
        takes_s = self.seconds + (1.6 if self.is_traced else 0.5)
        key = f"{self.runtime.key}/{self.kind}/{self.loops}/{how}"
        return Cell(key, axes, self.cpus, takes_s, self.measure, rounds=3)

    def measure(self) -> Figures:
        words = ("loops.py", self.kind, self.loops, self.seconds)
        with program(find(self.runtime), *words, cpus=set_of(self.cpus)) as server:
            if server.first["has_gil"] != (self.runtime is not FREE_THREADED):
                raise CellFailed("the GIL is not as it should be")
            trace = recorded(server.pid) if self.is_traced else nullcontext(None)
            with trace as report:
                figures = server.ask("begin")
        if not figures["answers"] or figures["answers"] != figures["counted"]:
            raise CellFailed(f"{figures['answers']} answers, {figures['counted']} counted")
        if report is not None:
            totals = report.process["totals"]
            figures["held"] = totals["held_s"] / max(totals["sampled_s"], 1e-9)
            figures["threads_waiting"] = totals["wait_s"] / figures["took_s"]
        return figures


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        return [
            _Server(TWIN, "shared", 2, is_traced=True, cpus="one", seconds=0.2).cell(),
            _Server(FREE_THREADED, "shared", 2, cpus="one", seconds=0.2).cell(),
            _Server(FREE_THREADED, "own", 2, cpus="one", seconds=0.2).cell(),
        ]
    servers = [
        _Server(runtime, kind, loops)
        for loops in _LOOPS
        for kind in _DICTS
        for runtime in _RUNTIMES
    ]
    servers += [_Server(TWIN, "shared", loops, is_traced=True) for loops in _LOOPS]
    return [each.cell() for each in servers]


def _body(results: Results) -> str:
    rows = []
    for runtime in _RUNTIMES:
        for kind, title in _DICTS.items():
            here: dict[str, str | float] = {"runtime": runtime.key, "dict": kind}
            rates = [
                shown(results, "requests_per_s", 0, "/s", loops=loops, mode="untraced", **here)
                for loops in _LOOPS
            ]
            rows.append((runtime.title, title, *rates))
    waits = []
    for loops in _LOOPS:
        here = {"runtime": TWIN.key, "dict": "shared", "loops": loops, "mode": "traced"}
        figures = [shown(results, figure, 2, **here) for figure in ("held", "threads_waiting")]
        traced = shown(results, "requests_per_s", 0, "/s", **here)
        waits.append((TWIN.title, str(loops), traced, *figures, "-"))
    waits += [(FREE_THREADED.title, str(loops), NONE, NONE, NONE, "untraced") for loops in _LOOPS]
    source = [(name, *(f"{rate}/s" for rate in rates)) for name, rates in _SOURCE.items()]
    named = [f"{loops} loop{'s' if loops > 1 else ''}" for loops in _LOOPS]
    seen = [
        "",
        "loops",
        "requests, traced",
        "held",
        "threads waiting",
        "waits for locks of objects",
    ]
    return "".join(
        [
            _TEXT,
            table(
                ["the source", *(f"{each} thread{'s' * (each > 1)}" for each in range(1, 5))],
                source,
            ),
            "\n",
            table(["ours, one dict or several", "", *named], rows),
            _ADDS,
            table(seen, waits),
        ]
    )


def _pictures(results: Results) -> Mapping[str, str]:
    lines = []
    for runtime in _RUNTIMES:
        for kind, title in _DICTS.items():
            here: dict[str, str | float] = {"runtime": runtime.key, "dict": kind}
            points = [
                Point(loops, *spread_of(results, "requests_per_s", loops=loops, **here))
                for loops in _LOOPS
                if results.values("requests_per_s", loops=loops, mode="untraced", **here)
            ]
            if points and points[0].x == 1:
                lines.append(Series(f"{runtime.title}, {title}", _relative(points)))
    if not lines:
        return {}
    lines += [
        Series(
            f"{name}, the source",
            _relative([Point(number + 1, rate) for number, rate in enumerate(rates)]),
            is_source=True,
        )
        for name, rates in _SOURCE.items()
    ]
    picture = Lines(
        "What another event loop adds",
        "requests a second by those of one loop, two CPUs; the source's machine had four cores",
        Axis("loops, each in a thread", labels=[(each, str(each)) for each in range(1, 5)]),
        Axis("times one loop"),
        lines,
    )
    return {"free_threaded.svg": draw_lines(picture)}


def _relative(points: Sequence[Point]) -> list[Point]:
    one = points[0].y
    return [
        Point(
            each.x,
            each.y / one,
            None if each.low is None else each.low / one,
            None if each.high is None else each.high / one,
        )
        for each in points
    ]


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    def gain(runtime: Runtime, kind: str, loops: int) -> float | None:
        here: dict[str, str | float] = {"runtime": runtime.key, "dict": kind, "mode": "untraced"}
        if not all(results.values("requests_per_s", loops=each, **here) for each in (1, loops)):
            return None
        one, more = (
            spread_of(results, "requests_per_s", loops=each, **here)[0] for each in (1, loops)
        )
        return more / one

    own, shared, with_gil = (
        gain(FREE_THREADED, "own", 2),
        gain(FREE_THREADED, "shared", 2),
        gain(TWIN, "own", 2),
    )
    if not own or not shared or not with_gil:
        return {}
    text = f"3.14t: 2 loops do {own:.2f} times what 1 does, with one dict {shared:.2f} times"
    scales = own > 1.4 > with_gil
    return {
        "S1": ("an event loop in each thread", "without transactions"),
        "S6": (text, "as the source: it scales" if scales else "no"),
        "S23": (f"{text}; with a GIL {with_gil:.2f} times", "-"),
    }


EXPERIMENT = Experiment(
    name="free_threaded",
    title="An event loop in each thread, without a GIL",
    sources=("S1", "S6", "S23"),
    source={"requests_per_s": _SOURCE},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
