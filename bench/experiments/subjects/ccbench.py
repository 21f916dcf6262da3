"""ccbench: throughput of threads, and latency of one thread beside them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.plots import Axis, Lines, Point, Series, draw_lines
from bench.experiments.processes import OWN, client_cpus, program, set_of
from bench.experiments.runtimes import MAIN, Runtime, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT", "latency", "throughput"]

_TASKS = ("pidigits", "regex", "bz2")
_TITLES = {
    "pidigits": "Pi calculation (Python)",
    "regex": "regular expression (C)",
    "bz2": "bz2 compression (C)",
}
_THREADS = (1, 2, 3, 4)
_SECONDS = 1.0
_PINGS = 20
_PING_S = 0.1
_RECEIVER = "receive"

_SOURCE_RATES = {
    "pidigits": (873, 845, 837, 820),
    "regex": (348, 339, 328, 317),
    "bz2": (367, 655, 642, 646),
}
_SOURCE_MS = {
    "pidigits": ((0, 0), (5, 0), (2, 2), (138, 100), (132, 99)),
    "regex": ((0, 0), (6, 1), (6, 6), (6, 4), (10, 8)),
    "bz2": ((0, 0), (0, 1), (0, 0), (0, 0), (0, 0)),
}
"""Mean and standard deviation beside 0 to 4 threads."""

_TEXT = """\
Antoine Pitrou's ccbench was the benchmark of the new GIL: how much threads compute together, and how late a thread that waits for a datagram gets it.
The source ran it on CPython 3.2a0 on a machine with two CPUs, with the new GIL and with priorities added to it; the figures here are those of the new GIL.
Latency is one way: the sender's time is in the datagram, and the receiver, in another process, compares it with its own when it runs Python again; 20 of them, 100 ms apart.
In the columns are the source's output and ours, in ccbench's own form.

"""
_AGREE = """
## Does the tracer agree?

The benchmark knows nothing of gilscope, and gilscope nothing of datagrams.
*mean latency* is the benchmark's; *mean wait* is what gilscope says that the receiving thread waited for the GIL, by the number of datagrams.
*drop* is how long the holder took to drop the GIL after it was asked: a task in C drops it when its call is over, which is why latency beside the regular expression is more than an interval.

"""
_CHANGED = """
Tracing has changed what it looks at in: {}.
There a datagram was much sooner, traced in every round less than three quarters of any round untraced: when several threads wait, microseconds decide who is next, and a trap of a waiting thread is such a time.
So who comes how late among several that wait is to be taken from a run without gilscope; what gilscope says of the run that it traces agrees with that run's own clock.
"""
_MUCH = 0.75


def throughput(runtime: Runtime, task: str, threads: int, seconds: float, cpus: str) -> Figures:
    """Return what so many threads compute; raises CellFailed and Unavailable."""
    words = ("throughput", task, threads, seconds)
    with program(find(runtime), "ccbench.py", *words, cpus=set_of(cpus)) as bench:
        if not bench.first["iterations"]:
            raise CellFailed("nothing was computed")
        return bench.first


def latency(
    runtime: Runtime, beside: tuple[str, int], pings: int, cpus: str, is_traced: bool
) -> Figures:
    """Return how late datagrams are *beside* a task in so many threads.

    Raises CellFailed and Unavailable.
    """
    words = ("latency", *beside, pings)
    with (
        program(find(runtime), "ccbench.py", *words, cpus=set_of(cpus)) as bench,
        recorded(bench.pid) if is_traced else nullcontext(None) as report,
    ):
        sent = (bench.first["port"], pings, bench.first["clock"])
        with program(OWN, "ccbench.py", "ping", *sent, cpus=client_cpus(cpus)):
            figures = bench.ask("late?")
    if figures["pings"] != pings:
        raise CellFailed(f"{figures['pings']} of {pings} datagrams came")
    if report is None:
        return figures
    waits = report.waits(_RECEIVER)
    if waits > 2 * pings + 2:
        raise CellFailed(f"{waits} waits of the thread that received {pings} datagrams")
    drops = report.process["totals"]["drop_requests"]
    return {
        **figures,
        "waits": waits,
        "mean_wait_ms": 1000 * report.wait_s(_RECEIVER) / pings,
        "drop_requests": drops,
        "drop_ms": 1000 * _middle_s(report.process["histograms"]["drop_latency"]),
    }


def _middle_s(histogram: Sequence[Sequence[float]] | None) -> float:
    """Return the middle of the bucket in which the median is, 0.0 where there is none."""
    counts = [(bound, count) for bound, count in histogram or () if bound is not None]
    half, seen, lower_s = sum(count for _, count in counts) / 2, 0.0, 0.0
    for bound, count in counts:
        seen += count
        if count and seen >= half:
            return (lower_s + bound) / 2
        lower_s = bound
    return 0.0


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        return [
            _throughput_cell("bz2", 2, 0.1, "one"),
            _latency_cell("pidigits", 1, 3, "one", is_traced=True),
        ]
    cells = [
        _throughput_cell(task, threads, _SECONDS, "two") for task in _TASKS for threads in _THREADS
    ]
    for task in _TASKS:
        for threads in (0, *_THREADS) if task == _TASKS[0] else _THREADS:
            cells += [
                _latency_cell(task, threads, _PINGS, "two", is_traced=is_traced)
                for is_traced in (False, True)
            ]
    return cells


def _throughput_cell(task: str, threads: int, seconds: float, cpus: str) -> Cell:
    return Cell(
        f"throughput/{task}/{threads}",
        {"what": "throughput", "task": task, "threads": threads},
        cpus,
        seconds + 0.3,
        partial(throughput, MAIN, task, threads, seconds, cpus),
    )


def _latency_cell(task: str, threads: int, pings: int, cpus: str, *, is_traced: bool) -> Cell:
    how = "traced" if is_traced else "untraced"
    return Cell(
        f"latency/{task}/{threads}/{how}",
        {"what": "latency", "task": task, "threads": threads, "mode": how},
        cpus,
        pings * _PING_S + (1.5 if is_traced else 0.4),
        partial(latency, MAIN, (task, threads), pings, cpus, is_traced),
        rounds=3,
    )


def _body(results: Results) -> str:
    blocks = [_block("CPython 3.2a0.0, the source", _source_rate, _source_ms)]
    blocks.append(_block(f"{MAIN.title}, ours", partial(_rate, results), partial(_ms, results)))
    left, right = (each.splitlines() for each in blocks)
    width = max(map(len, left)) + 4
    both = "\n".join(
        f"    {one:{width}}{two}".rstrip() for one, two in zip(left, right, strict=True)
    )
    header = [
        "beside",
        "threads",
        "mean latency, untraced",
        "mean latency, traced",
        "mean wait",
        "apart",
        "drop, half within",
    ]
    agreement = table(header, _agreement(results))
    return f"{_TEXT}{both}\n{_AGREE}{agreement}{_changed(results)}"


def _block(title: str, rate: object, late: object) -> str:
    assert callable(rate)
    assert callable(late)
    lines = [f"== {title} ==", "", "--- Throughput ---", ""]
    for task in _TASKS:
        lines += [_TITLES[task], ""]
        for threads in _THREADS:
            found, alone = rate(task, threads), rate(task, 1)
            shares = "" if threads == 1 or not alone else f" ( {int(100 * (found or 0) / alone)} %)"
            lines.append(
                f"threads={threads}: "
                + (
                    f"{found:.0f}{' iterations/s.' if threads == 1 else ''}{shares}"
                    if found
                    else "not measured"
                )
            )
        lines.append("")
    lines += ["--- Latency ---", ""]
    for task in _TASKS:
        lines += [f"Background CPU task: {_TITLES[task]}", ""]
        for threads in (0, *_THREADS):
            found = late(task, threads)
            text = f"{found[0]:.0f} ms. (std dev: {found[1]:.0f} ms.)" if found else "not measured"
            lines.append(f"CPU threads={threads}: {text}")
        lines.append("")
    return "\n".join(lines)


def _source_rate(task: str, threads: int) -> float:
    return _SOURCE_RATES[task][threads - 1]


def _source_ms(task: str, threads: int) -> tuple[float, float]:
    return _SOURCE_MS[task][threads]


def _rate(results: Results, task: str, threads: int) -> float | None:
    here: dict[str, str | float] = {"what": "throughput", "task": task, "threads": threads}
    if not results.values("iterations_per_s", **here):
        return None
    return spread_of(results, "iterations_per_s", **here)[0]


def _ms(results: Results, task: str, threads: int) -> tuple[float, float] | None:
    # Beside no thread the task does not matter: it is measured once.
    here = _latency_axes(task if threads else _TASKS[0], threads)
    if not results.values("mean_ms", mode="untraced", **here):
        return None
    mean_ms, deviation_ms = (
        spread_of(results, figure, mode="untraced", **here)[0]
        for figure in ("mean_ms", "deviation_ms")
    )
    return mean_ms, deviation_ms


def _latency_axes(task: str, threads: int) -> dict[str, str | float]:
    return {"what": "latency", "task": task, "threads": threads}


def _agreement(results: Results) -> Iterator[tuple[str, ...]]:
    for task in _TASKS:
        for threads in _THREADS:
            here = _latency_axes(task, threads)
            apart = [
                each.figures["mean_ms"] - each.figures["mean_wait_ms"]
                for each in results.measured(mode="traced", **here)
            ]
            yield (
                task,
                str(threads),
                shown(results, "mean_ms", 2, " ms", mode="untraced", **here),
                shown(results, "mean_ms", 2, " ms", mode="traced", **here),
                shown(results, "mean_wait_ms", 2, " ms", mode="traced", **here),
                f"{sorted(apart)[len(apart) // 2]:.2f} ms" if apart else NONE,
                shown(results, "drop_ms", 2, " ms", mode="traced", **here),
            )


def _changed(results: Results) -> str:
    """Return what tracing itself has changed beyond the range of the rounds, in words."""
    rows = []
    for task in _TASKS:
        for threads in _THREADS:
            here = _latency_axes(task, threads)
            traced = results.values("mean_ms", mode="traced", **here)
            untraced = results.values("mean_ms", mode="untraced", **here)
            if traced and untraced and max(traced) < _MUCH * min(untraced):
                rows.append(f"{task} with {threads}")
    return _CHANGED.format(", ".join(rows)) if rows else ""


def _pictures(results: Results) -> Mapping[str, str]:
    pictures = {}
    lines = []
    for task in _TASKS:
        rates = [_rate(results, task, threads) for threads in _THREADS]
        if all(rates):
            lines.append(Series(f"{task}, ours", _shares([rate or 0.0 for rate in rates])))
    if lines:
        lines += [
            Series(f"{task}, the source", _shares(_SOURCE_RATES[task]), is_source=True)
            for task in _TASKS
        ]
        picture = Lines(
            "What threads compute together",
            "iterations of all threads by those of one thread alone",
            Axis("threads", labels=[(each, str(each)) for each in _THREADS]),
            Axis("per cent of one thread"),
            lines,
        )
        pictures["ccbench-throughput.svg"] = draw_lines(picture)
    groups = [Group(f"beside {_TITLES[task]}", list(_bars(results, task))) for task in _TASKS]
    groups = [each for each in groups if each.bars]
    if groups:
        subtitle = (
            "mean of 20, one way; green: ours, with gilscope's wait;"
            " orange: the source ± its deviation"
        )
        chart = Chart("How late a datagram is", subtitle, groups, 1, " ms", own_scales=True)
        pictures["ccbench-latency.svg"] = draw(chart)
    return pictures


def _shares(rates: Sequence[float]) -> list[Point]:
    return [
        Point(threads, 100 * rate / rates[0]) for threads, rate in zip(_THREADS, rates, strict=True)
    ]


def _bars(results: Results, task: str) -> Iterator[Bar]:
    for threads in _THREADS:
        here = _latency_axes(task, threads)
        label = f"{threads} thread{'s' if threads > 1 else ''}"
        is_here = False
        for figure, mode, name in (
            ("mean_ms", "untraced", "latency"),
            ("mean_wait_ms", "traced", "wait for the GIL"),
        ):
            if results.values(figure, mode=mode, **here):
                ends = spread_of(results, figure, mode=mode, **here)
                is_here = True
                yield Bar(f"{label}, {name}", *ends, "ours")
        if is_here:
            mean_ms, deviation_ms = _source_ms(task, threads)
            low, high = max(0.0, mean_ms - deviation_ms), mean_ms + deviation_ms
            yield Bar(f"{label}, the source", mean_ms, low, high, "peer")


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    rates = {task: (_rate(results, task, 1), _rate(results, task, 4)) for task in _TASKS}
    late = [_ms(results, task, 4) for task in _TASKS]
    found = {}
    if all(one and four for one, four in rates.values()):
        shares = {task: 100 * (four or 0) / (one or 1) for task, (one, four) in rates.items()}
        text = ", ".join(f"{shares[task]:.0f} %" for task in _TASKS)
        is_same = shares["bz2"] > 130 > max(shares["pidigits"], shares["regex"])
        found["S27"] = (f"4 threads: {text}", "yes" if is_same else "no")
    if all(late):
        text = ", ".join(f"{each[0]:.0f} ms" for each in late if each)
        found["S28"] = (f"4 threads: {text}", "see the page")
    return found


EXPERIMENT = Experiment(
    name="ccbench",
    title="ccbench, in its own form",
    sources=("S27", "S28"),
    source={"iterations_per_s": _SOURCE_RATES, "latency_ms": _SOURCE_MS},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
