"""ccbench on PyPy, whose GIL is another one, and whether what is traced there adds up."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import program, set_of
from bench.experiments.runtimes import RUNTIMES, find
from bench.experiments.subjects.ccbench import latency, throughput
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_PYPY = next(each for each in RUNTIMES if each.key == "pypy3")
_TASKS = ("pidigits", "regex", "bz2")
_LATE_BESIDE = ("pidigits", "regex")
_SEVERAL = (1, 4)
_BOOKS = (2, 4)
_SECONDS = 1.5
_PINGS = {("pidigits", 1): 20, ("pidigits", 4): 20, ("regex", 1): 5, ("regex", 4): 20}
"""Beside regex each of them waits for seconds, and all of them for those before."""
_STARVES = ("regex", 4)
"""There the receiver hardly ever has the GIL: minutes for each run."""
_WORKER = "work"
_SOURCE = {"four_by_one": {"pidigits": 0.93, "regex": 0.91, "bz2": 1.75}}
"""CPython's new GIL: what 4 threads do by what 1 does."""

_TEXT = f"""\
The sources' benchmarks of the GIL are of CPython; PyPy stands beside it for its speed alone.
Its GIL is another one: a thread that waits asks for it every 0.1 ms, and gets it when the holder comes to the end of a piece of work, in RPython's own words a *yield*.
Here [ccbench](ccbench.md) is run on {_PYPY.title}, with the same programs and definitions.

"""
_LATE = """
## Latency, and what gilscope says of it

*mean latency* is the benchmark's own, one way; *mean wait* is what gilscope says that the receiving thread waited for the GIL, by the number of datagrams.
Where the receiver is slower than they come, each waits for all before it: that mean grows with their number, and is no property of the GIL alone.
Beside regex in four threads the receiver hardly ever gets the GIL: that was run once, and not traced.

"""
_ADD_UP = """
## Do the books balance?

Threads that only compute either have the GIL or wait for it, and one of them always has it.
So what gilscope says that they waited, and the time that passed, must together be the sum of what each thread took, by the program's own clock: the last column is 1.
Holds are not measured on PyPy; the time that passed stands for them.

"""


def _books(threads: int, seconds: float, cpus: str) -> Figures:
    words = ("books", "pidigits", threads, seconds)
    with (
        program(find(_PYPY), "ccbench.py", *words, cpus=set_of(cpus)) as running,
        recorded(running.pid) as report,
    ):
        figures = running.ask("begin")
    wait_s = report.wait_s(_WORKER)
    if not 0 < wait_s < threads * figures["took_s"]:
        raise CellFailed(f"{threads} threads waited {wait_s:.3f} s in {figures['took_s']:.3f} s")
    added = (wait_s + figures["took_s"]) / figures["thread_s"]
    return {**figures, "wait_s": wait_s, "waits": report.waits(_WORKER), "balance": added}


def _books_cell(threads: int, seconds: float, cpus: str) -> Cell:
    axes: dict[str, str | float] = {"what": "books", "threads": threads}
    measure = partial(_books, threads, seconds, cpus)
    return Cell(f"books/{threads}/traced", axes, cpus, seconds + 1.5, measure, rounds=3)


def _throughput_cell(task: str, threads: int) -> Cell:
    axes: dict[str, str | float] = {"what": "throughput", "task": task, "threads": threads}
    measure = partial(throughput, _PYPY, task, threads, _SECONDS, "two")
    key = f"throughput/{task}/{threads}"
    return Cell(key, axes, "two", _SECONDS + 0.5, measure, rounds=3)


def _latency_cell(task: str, threads: int, pings: int, cpus: str, *, is_traced: bool) -> Cell:
    how = "traced" if is_traced else "untraced"
    axes: dict[str, str | float] = {
        "what": "latency",
        "task": task,
        "threads": threads,
        "mode": how,
    }
    measure = partial(latency, _PYPY, (task, threads), pings, cpus, is_traced)
    takes_s = pings * 0.1 + (1.5 if is_traced else 0.5)
    rounds = 1 if (task, threads) == _STARVES else 3
    return Cell(f"latency/{task}/{threads}/{how}", axes, cpus, takes_s, measure, rounds)


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        return [
            _books_cell(2, 0.5, "one"),
            _latency_cell("pidigits", 1, 3, "one", is_traced=False),
        ]
    cells = [_throughput_cell(task, threads) for task in _TASKS for threads in _SEVERAL]
    cells += [
        _latency_cell(task, threads, _PINGS[task, threads], "two", is_traced=is_traced)
        for task in _LATE_BESIDE
        for threads in _SEVERAL
        for is_traced in (False, True)
        if not is_traced or (task, threads) != _STARVES
    ]
    return [*cells, *(_books_cell(threads, _SECONDS, "two") for threads in _BOOKS)]


def _body(results: Results) -> str:
    rates = [
        (
            task,
            *(
                shown(
                    results, "iterations_per_s", 0, "/s", what="throughput", task=task, threads=each
                )
                for each in _SEVERAL
            ),
            _percent(_gain(results, task)),
            _percent(_SOURCE["four_by_one"][task]),
        )
        for task in _TASKS
    ]
    header = ["task", "1 thread", "4 threads", "4 by 1", "4 by 1, CPython in the source"]
    late_header = [
        "beside",
        "threads",
        "datagrams",
        "mean latency, untraced",
        "the same, traced",
        "mean wait",
    ]
    books_header = ["threads", "took", "sum over threads", "waited", "(waited + took) by sum"]
    return "".join(
        [
            *(_TEXT, table(header, rates)),
            *(_LATE, table(late_header, _late(results))),
            *(_ADD_UP, table(books_header, _balanced(results))),
        ]
    )


def _late(results: Results) -> Iterator[tuple[str, ...]]:
    for task in _LATE_BESIDE:
        for threads in _SEVERAL:
            here: dict[str, str | float] = {"what": "latency", "task": task, "threads": threads}
            yield (
                task,
                str(threads),
                str(_PINGS[task, threads]),
                shown(results, "mean_ms", 2, " ms", mode="untraced", **here),
                shown(results, "mean_ms", 2, " ms", mode="traced", **here),
                shown(results, "mean_wait_ms", 2, " ms", mode="traced", **here),
            )


def _balanced(results: Results) -> Iterator[tuple[str, ...]]:
    for threads in _BOOKS:
        here: dict[str, str | float] = {"what": "books", "threads": threads}
        yield (
            str(threads),
            shown(results, "took_s", 3, " s", **here),
            shown(results, "thread_s", 3, " s", **here),
            shown(results, "wait_s", 3, " s", **here),
            shown(results, "balance", 3, **here),
        )


def _gain(results: Results, task: str) -> float | None:
    rates = [
        spread_of(results, "iterations_per_s", what="throughput", task=task, threads=each)[0]
        for each in _SEVERAL
        if results.values("iterations_per_s", what="throughput", task=task, threads=each)
    ]
    return rates[1] / rates[0] if len(rates) > 1 else None


def _percent(share: float | None) -> str:
    return f"{100 * share:.0f} %" if share else NONE


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for task in _LATE_BESIDE:
        bars = []
        for threads in _SEVERAL:
            here: dict[str, str | float] = {"what": "latency", "task": task, "threads": threads}
            label = f"{threads} thread{'s' * (threads > 1)}"
            if results.values("mean_ms", mode="untraced", **here):
                ends = spread_of(results, "mean_ms", mode="untraced", **here)
                bars.append(Bar(f"{label}, latency", *ends, "ours"))
            if results.values("mean_wait_ms", mode="traced", **here):
                ends = spread_of(results, "mean_wait_ms", mode="traced", **here)
                bars.append(Bar(f"{label}, wait for the GIL", *ends, "peer"))
        if bars:
            groups.append(Group(f"beside {task}", bars))
    if not groups:
        return {}
    subtitle = f"mean, one way, {_PYPY.title}, two CPUs; median and range"
    title = "How late a datagram is on PyPy"
    chart = Chart(title, subtitle, groups, 2, " ms", own_scales=True)
    return {"pypy_gil.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    found = {}
    gains = [_gain(results, task) for task in _TASKS]
    if all(gains):
        text = ", ".join(_percent(each) for each in gains)
        found["S27"] = (f"PyPy, 4 threads: {text}", "see the page")
    late = [
        results.values("mean_ms", what="latency", task=task, threads=4, mode="untraced")
        for task in _LATE_BESIDE
    ]
    if all(late):
        text = ", ".join(f"{sorted(each)[len(each) // 2]:.1f} ms" for each in late)
        found["S28"] = (f"PyPy, 4 threads: {text}", "see the page")
    return found


EXPERIMENT = Experiment(
    name="pypy_gil",
    title="ccbench on PyPy, and whether the books balance",
    sources=("S27", "S28"),
    source=_SOURCE,
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
