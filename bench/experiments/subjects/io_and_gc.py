"""How often I/O releases the GIL, and what a collection of garbage costs another thread."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import program, set_of
from bench.experiments.runtimes import MAIN, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_CALLS = ("os.write", "file.write", "os.read", "file.read")
_SIZES = (10, 1_000, 100_000)
_BYTES = 20_000_000
_MOST_CALLS = {"os": 20_000, "file": 1_000_000}
_ENCODINGS = {"utf-8": 3.903, "latin-1": 3.615, "binary": 1.886}
_LINE = "2010-02-26 12:00:00 INFO a line of a log that is as long as most of them are\n"
_FILE_BYTES = 40_000_000
_GC = {
    "collect": "a collection of the whole heap every 100 ms",
    "freeze": "the same, the heap frozen (gc.freeze)",
    "disabled": "no automatic collections",
}
_GC_SECONDS = 2.0
_WORK, _TICK = "work", "tick"
_SLACK = 20
_QUICK_CALLS = 100

_TEXT = """\
The source compares `os.write` and `os.read` with the same calls of files, at several sizes, on PyPy before and after objects can be pinned (S16).
Its picture is lost; what it says is that the calls of `os` beat CPython everywhere, and those of files less.
Another source reads a file by lines: 3.903 s as UTF-8, 3.615 s as Latin-1, 1.886 s as bytes (S31).
Here the same calls are made on CPython, writing to `/dev/null` and reading from `/dev/zero`, and what is counted is how often each releases the GIL.

## Calls

*acquires a call* is counted by gilscope in full mode: each is a moment in which another thread can acquire the GIL and keep it for 5 ms.

"""
_LINES = """
## Lines by encoding

All three read the same blocks, so they release the GIL equally often; what differs is how long they hold it.

"""
_COLLECT = """
## Collections of garbage

The source's collector is PyPy's (S15, fibonacci and gcbench, figures relative to CPython 2.7).
Here one thread makes lists and collects beside a heap of 600,000 containers, while another wants to run every millisecond.
*named* is the share of all waiting time for which gilscope says that the holder was collecting garbage.

"""


def _traced(words: Sequence[str | float], cpus: str, mode: str, role: str) -> Figures:
    interpreter = find(MAIN)
    with (
        program(interpreter, "io_and_gc.py", *words, cpus=set_of(cpus)) as running,
        recorded(running.pid, mode=mode) if mode else nullcontext(None) as report,
    ):
        figures = running.ask("begin")
    if report is not None:
        threads = report.threads(role)
        holds = sum(each["holds"] or 0 for each in threads)
        hold_s = sum(each["hold_s"] or 0.0 for each in threads)
        figures |= {
            "holds": holds,
            "holds_a_call": holds / max(1, figures["calls"]),
            "mean_hold_us": 1e6 * hold_s / holds if holds else None,
            "wait_s": report.wait_s(role),
            "gc_share": report.share_of_state("gc"),
        }
    return figures


def _calls(how: str, size: int, calls: int, cpus: str, mode: str) -> Figures:
    figures = _traced(("io", how, size, calls), cpus, mode, _WORK)
    if mode and how.startswith("os.") and figures["holds"] > calls + _SLACK:
        raise CellFailed(f"{figures['holds']} acquires in {calls} calls of {how}")
    if mode and calls > _QUICK_CALLS and not figures["holds"]:
        raise CellFailed("no acquire was counted")
    figures["mb_per_s"] = figures["bytes"] / figures["took_s"] / 1e6
    return figures


def _by_lines(how: str, size: int, cpus: str, mode: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        path.write_text(_LINE * (size // len(_LINE)))
        figures = _traced(("lines", how, str(path)), cpus, mode, _WORK)
    if figures["calls"] != size // len(_LINE):
        raise CellFailed(f"{figures['calls']} lines were read")
    return figures


def _collections(how: str, seconds: float, cpus: str, mode: str) -> Figures:
    figures = _traced(("gc", how, seconds), cpus, mode, _TICK)
    if (how == "disabled") != (figures["collections"] == 0):
        raise CellFailed(f"{figures['collections']} collections")
    return figures


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        axes: dict[str, str | float] = {"what": "io", "how": "os.write", "size": 10, "mode": "full"}
        return [
            Cell(
                "io/os.write/10/full",
                axes,
                "one",
                2,
                partial(_calls, "os.write", 10, _QUICK_CALLS, "one", "full"),
            )
        ]
    cells = []
    for how in _CALLS:
        for size in _SIZES:
            calls = min(_MOST_CALLS[how.partition(".")[0]], _BYTES // size)
            for mode in ("", "full"):
                key, axes = f"io/{how}/{size}", {"what": "io", "how": how, "size": size}
                cells.append(
                    _cell(key, axes, mode, 0.2, partial(_calls, how, size, calls, "two", mode))
                )
    for how in _ENCODINGS:
        for mode in ("", "full"):
            axes = {"what": "lines", "how": how}
            cells.append(
                _cell(
                    f"lines/{how}",
                    axes,
                    mode,
                    0.6,
                    partial(_by_lines, how, _FILE_BYTES, "two", mode),
                )
            )
    for how in _GC:
        for mode in ("", "contention"):
            axes = {"what": "gc", "how": how}
            call = partial(_collections, how, _GC_SECONDS, "two", mode)
            cells.append(_cell(f"gc/{how}", axes, mode, _GC_SECONDS + 0.3, call))
    return cells


def _cell(
    key: str, axes: Mapping[str, str | float], mode: str, seconds: float, call: partial[Figures]
) -> Cell:
    how = mode or "untraced"
    return Cell(
        f"{key}/{how}",
        {**axes, "mode": how},
        "two",
        seconds + (2.4 if mode else 0.3),
        call,
        rounds=3,
    )


def _body(results: Results) -> str:
    calls = [
        (
            f"`{how}`",
            f"{size:,} bytes",
            shown(results, "mb_per_s", 1, " MB/s", how=how, size=size, mode="untraced"),
            shown(results, "mb_per_s", 1, " MB/s", how=how, size=size, mode="full"),
            shown(results, "holds_a_call", 4, how=how, size=size, mode="full"),
        )
        for how in _CALLS
        for size in _SIZES
    ]
    lines = [
        (
            how,
            f"{source_s:.3f} s",
            shown(results, "took_s", 3, " s", what="lines", how=how, mode="untraced"),
            shown(results, "holds", 0, what="lines", how=how, mode="full"),
            shown(results, "mean_hold_us", 0, " µs", what="lines", how=how, mode="full"),
        )
        for how, source_s in _ENCODINGS.items()
    ]
    collections = [
        (
            title,
            shown(results, "collections", 0, what="gc", how=how, mode="untraced"),
            shown(results, "latest_ms", 0, " ms", what="gc", how=how, mode="untraced"),
            shown(results, "wait_s", 2, " s", what="gc", how=how, mode="contention"),
            shown(results, "gc_share", 2, what="gc", how=how, mode="contention"),
        )
        for how, title in _GC.items()
    ]
    return "".join(
        [
            _TEXT + table(["call", "size", "speed", "the same, traced", "acquires a call"], calls),
            _LINES + table(["lines as", "the source", "ours", "acquires", "mean hold"], lines),
            _COLLECT
            + table(
                ["", "collections", "latest tick", "the ticking thread waited", "named"],
                collections,
            ),
        ]
    )


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for figure, title, mode in (
        ("mb_per_s", "speed, MB/s", "untraced"),
        ("holds_a_call", "acquires of the GIL a call", "full"),
    ):
        for size in _SIZES:
            bars = [
                Bar(how, *spread_of(results, figure, how=how, size=size, mode=mode), "ours")
                for how in _CALLS
                if results.values(figure, how=how, size=size, mode=mode)
            ]
            if bars:
                groups.append(Group(f"{title}, {size:,} bytes a call", bars))
    if not groups:
        return {}
    title = f"{MAIN.title}, median and range of the rounds"
    chart = Chart("Calls of the system and of files", title, groups, 2, own_scales=True)
    return {"io_and_gc.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    took = {
        how: results.values("took_s", what="lines", how=how, mode="untraced") for how in _ENCODINGS
    }
    found = {}
    if all(took.values()):
        middle = {how: sorted(values)[len(values) // 2] for how, values in took.items()}
        text = ", ".join(f"{how} {middle[how]:.3f} s" for how in _ENCODINGS)
        is_same = middle["utf-8"] >= middle["latin-1"] > middle["binary"]
        found["S31"] = found["S30"] = (text, "yes" if is_same else "no")
    calls = shown(results, "holds_a_call", 3, how="file.write", size=10, mode="full")
    if calls != NONE:
        found["S16"] = (
            f"file.write of 10 bytes acquires the GIL {calls} times a call",
            "picture lost",
        )
    late = shown(results, "latest_ms", 0, " ms", what="gc", how="collect", mode="untraced")
    if late != NONE:
        found["S15"] = (f"collections make another thread {late} late at most", "another collector")
    return found


EXPERIMENT = Experiment(
    name="io_and_gc",
    title="Calls that release the GIL, and collections that keep it",
    sources=("S15", "S16", "S30", "S31"),
    source={
        "lines_s": _ENCODINGS,
        "timethis_s": {"utf-8": 3.762, "latin-1": 3.513},
        "fibonacci_s": {"CPython 2.7": 4.8, "PyPy 2.4": 0.59, "without zeroing": 0.45},
        "gcbench_s": {"CPython 2.7": 22, "PyPy 2.4": 1.34, "without zeroing": 1.02},
    },
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
