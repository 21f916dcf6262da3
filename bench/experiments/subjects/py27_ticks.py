"""Counting in threads on CPython 2.7, whose holder gives the GIL away at ticks."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import program, set_of
from bench.experiments.runtimes import MAIN, RUNTIMES, Runtime, find
from bench.experiments.tracing import Report, recorded
from bench.markdown import table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_OLD = next(each for each in RUNTIMES if each.key == "2.7")
_PYPY = next(each for each in RUNTIMES if each.key == "pypy3")
_NUMBER = 6_000_000
_QUICK_NUMBER = 300_000
_TICK = 100
"""Bytecodes; each count takes one or more."""
_SOURCE = "slower than one after the other, and less so on one CPU"


@dataclass(frozen=True, slots=True)
class _Arm:
    key: str
    title: str
    order: str
    times: int
    cpus: str
    source: str
    runtime: Runtime = _OLD


_ARMS = (
    _Arm("sequence", "one after the other", "sequence", 2, "two", "the measure"),
    _Arm("two_cpus", "in two threads, on two CPUs", "threads", 2, "two", "much slower"),
    _Arm("one_cpu", "in two threads, on one CPU", "threads", 2, "one", "slower, but less so"),
    _Arm("four", "in four threads, on two CPUs", "threads", 4, "two", "no better than two"),
    _Arm("new", f"in two threads, {MAIN.title}", "threads", 2, "two", "fixed by 3.2", MAIN),
    _Arm("pypy", f"in two threads, {_PYPY.title}", "threads", 2, "two", "-", _PYPY),
)

_TEXT = f"""\
`count(n)` counts down from {_NUMBER // 1_000_000} million, and nothing else.
The talks in which the old GIL was taken apart (2009 and 2010) did that twice, one after the other and in two threads, and then switched off one of the CPUs.
In threads it was {_SOURCE}.
Their figures are not among the documents that these pages are about, so only the shape is compared.

"""
_SIGNALS = """
## Signals and failed wake-ups

Whoever holds the GIL of CPython 2.7 releases it every 100 bytecodes (`sys.getcheckinterval`), signals whoever waits, and acquires it back at once.
*for each wait*: how often a thread was woken and found the GIL held again, before it got it.
*released*: from a cell in full mode, which counts each release and makes the threads slower; *changed hands* is how many of these another thread came after.

"""
_ADDS = """
## What gilscope adds

- Two threads that compute under one GIL wait for half of their time, whatever the GIL. What is lost beyond that are the rounds of their fight for it: a signal, a wake-up and two system calls each, seen as failed wake-ups and in the system time.
- On one CPU the thread that was signalled cannot run before the holder's time is over, so there is hardly a fight.
- What helps is in the report: processes, one CPU for all threads, fewer ticks while they compute (`sys.setcheckinterval`), Python 3.
- Of PyPy it tells waits and who held the GIL; how often it was released nothing shows there.
"""


def _measure(arm: _Arm, mode: str, number: int) -> Figures:
    words = (arm.order, arm.times, number)
    interpreter = find(arm.runtime)
    with (
        program(interpreter, "count.py", *words, cpus=set_of(arm.cpus)) as running,
        recorded(running.pid, mode=mode) if mode else nullcontext(None) as report,
    ):
        figures = dict(running.ask("go"))
    if figures["left"] or figures["counted"] != arm.times:
        raise CellFailed("the program has not counted down to 0")
    if report is not None:
        figures |= _seen(report, is_alone=arm.order == "sequence")
        if mode == "full" and figures["releases"] < arm.times * number / _TICK:
            raise CellFailed("there were fewer releases than ticks")
    return figures


def _seen(report: Report, *, is_alone: bool) -> Figures:
    totals, waits = report.process["totals"], report.waits("count")
    if is_alone and report.waits("main") + waits:
        raise CellFailed("a thread that is alone waited for the GIL")
    failed = totals["failed_wakeups"]
    return {
        "waits": totals["waits"],
        "wait_s": totals["wait_s"],
        "failed_wakeups": failed,
        "failed_for_each": failed / totals["waits"] if failed and totals["waits"] else None,
        "releases": totals["holds"],
        "switches": totals["waits"] if totals["holds"] else None,
    }


def _cell(arm: _Arm, mode: str, number: int) -> Cell:
    how = {"": "untraced", "contention": "traced"}.get(mode, mode)
    return Cell(
        f"{arm.key}/{how}",
        {"arm": arm.key, "mode": how},
        arm.cpus,
        (1.5 if arm.times > 2 else 1.0) + {"": 0.3, "contention": 1.2}.get(mode, 4.0),
        partial(_measure, arm, mode, number),
        rounds=3,
    )


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        on_one = [_Arm(each.key, each.title, each.order, 2, "one", "") for each in _ARMS[:2]]
        return [
            _cell(on_one[0], "contention", _QUICK_NUMBER),
            _cell(on_one[1], "full", _QUICK_NUMBER),
        ]
    usual = [_cell(arm, mode, _NUMBER) for arm in _ARMS for mode in ("", "contention")]
    return [*usual, _cell(_ARMS[1], "full", _NUMBER), _cell(_ARMS[2], "full", _NUMBER)]


def _body(results: Results) -> str:
    times = [
        (
            arm.title,
            arm.source,
            shown(results, "wall_s", 2, " s", arm=arm.key, mode="untraced"),
            shown(results, "wall_s", 2, " s", arm=arm.key, mode="traced"),
            shown(results, "system_s", 2, " s", arm=arm.key, mode="untraced"),
        )
        for arm in _ARMS
    ]
    signals = [
        (
            arm.title,
            shown(results, "waits", 0, arm=arm.key, mode="traced"),
            shown(results, "wait_s", 3, " s", arm=arm.key, mode="traced"),
            shown(results, "failed_wakeups", 0, arm=arm.key, mode="traced"),
            shown(results, "failed_for_each", 1, arm=arm.key, mode="traced"),
            shown(results, "releases", 0, arm=arm.key, mode="full"),
            shown(results, "switches", 0, arm=arm.key, mode="full"),
        )
        for arm in _ARMS[1:]
    ]
    return (
        _TEXT
        + table(["count", "the source", "ours", "the same, traced", "system time"], times)
        + _SIGNALS
        + table(
            [
                *("count", "waits", "time waited", "failed wake-ups", "for each wait"),
                *("released", "changed hands"),
            ],
            signals,
        )
        + _ADDS
    )


def _pictures(results: Results) -> Mapping[str, str]:
    bars = [
        Bar(arm.title, *spread_of(results, "wall_s", arm=arm.key, mode="untraced"), "ours")
        for arm in _ARMS
        if results.values("wall_s", arm=arm.key, mode="untraced")
    ]
    if not bars:
        return {}
    chart = Chart(
        "Counting, one after the other and in threads",
        f"{_OLD.title} where nothing else is said, median and range of the rounds",
        [Group("seconds", bars)],
        2,
    )
    return {"py27_ticks.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    walls = {
        arm.key: spread_of(results, "wall_s", arm=arm.key, mode="untraced")[0]
        for arm in _ARMS[:3]
        if results.values("wall_s", arm=arm.key, mode="untraced")
    }
    if len(walls) < len(_ARMS[:3]):
        return {}
    sequence, two, one = walls["sequence"], walls["two_cpus"], walls["one_cpu"]
    text = (
        f"{sequence:.2f} s one after the other, {two:.2f} s in two threads, {one:.2f} s on one CPU"
    )
    return {"S35": (text, "yes" if two > one and two > sequence else "no")}


EXPERIMENT = Experiment(
    name="py27_ticks",
    title="Counting in threads on CPython 2.7",
    sources=("S35",),
    source={"S35": _SOURCE},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
