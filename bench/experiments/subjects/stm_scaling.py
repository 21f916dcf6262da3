"""Primes and paths as live transactions: what stops them from scaling, removed piece by piece."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.plots import Axis, Lines, Point, Series, draw_lines
from bench.experiments.processes import compiled, program, set_of
from bench.experiments.tracing import recorded_transactions
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, Kind, draw

__all__ = ["EXPERIMENT"]

_THREADS = (1, 2, 4)
_MILLISECONDS = 1000
_MOST_REASONS = 3
_COUNTED: tuple[tuple[str, str, Kind], ...] = (
    ("restarts_per_100", "restarts, for 100 transactions", "ours"),
    ("irrevocable_per_100", "made irrevocable, for 100 transactions", "peer"),
)
_SOURCE = {"requests_per_s": {"PyPy-STM, 1 to 4 threads": (9.3, 16.4, 20.4, 24.2)}}

_TEXT = """\
PyPy-STM is not to be had live; GCC's libitm is, and knows the same three obstacles: a transaction that makes a call that cannot be rolled back becomes irrevocable, and all others wait; two that write to the same place, one starts again; and one that reads what another writes.
A program in C answers requests in so many threads, each as a transaction of GCC's: the primes up to 2,000, and in the second part shortest paths on a map of 24 by 24 on which every fifth turn toggles a wall.
The obstacles of the source are taken out one by one: asking for the time within the transaction (S4), then the counter that all share (S10).
Each arm's counts must be those of its transactions in the end, and gilscope must have counted as many commits as the program.
With S6 the source's program made 1.76 times as many requests with two threads as with one, and 2.6 times as many with four.

"""
_ADDS = """
## What gilscope adds

`gilscope record -p PID --mode full` saw every transaction of the arms with two threads: how often one was made irrevocable, and why tries were started again, in libitm's words.
One that is irrevocable runs alone: the others wait until it is over, and what they lose is in no count of restarts.
`SERIAL_IRR` is a try that has to begin anew to become so, `LOCKED_WRITE` and `LOCKED_READ` are two threads at the same place, and `VALIDATE_*` is one that had read what another has written since.
The arm without an obstacle shows none of them.

"""


@dataclass(frozen=True, slots=True)
class _Arm:
    title: str
    work: str
    asks_time: bool
    is_shared: bool


_ARMS = {
    "primes/time": _Arm(
        "primes: the time, and one counter", "primes", asks_time=True, is_shared=True
    ),
    "primes/counter": _Arm(
        "primes: one counter for all", "primes", asks_time=False, is_shared=True
    ),
    "primes/own": _Arm(
        "primes: a counter for each thread", "primes", asks_time=False, is_shared=False
    ),
    "astar/shared": _Arm("A*: one map for all", "astar", asks_time=False, is_shared=True),
    "astar/own": _Arm("A*: a map for each thread", "astar", asks_time=False, is_shared=False),
}


@dataclass(frozen=True, slots=True)
class _Run:
    arm: str
    threads: int
    is_traced: bool = False
    cpus: str = "two"
    milliseconds: int = _MILLISECONDS

    def cell(self) -> Cell:
        how = "traced" if self.is_traced else "untraced"
        axes: dict[str, str | float] = {"arm": self.arm, "threads": self.threads, "mode": how}
        takes_s = self.milliseconds / 1000 + (2.5 if self.is_traced else 0.1)
        key = f"{self.arm}/{self.threads}/{how}"
        return Cell(key, axes, self.cpus, takes_s, self.measure, rounds=3)

    def measure(self) -> Figures:
        arm = _ARMS[self.arm]
        # The method that libitm takes where it has no hardware transactions, on every machine.
        made = compiled("stm_scaling.c", "-fgnu-tm", ITM_DEFAULT_METHOD="ml_wt")
        words = (arm.work, int(arm.asks_time), int(arm.is_shared), self.threads, self.milliseconds)
        with program(made, str(made.elf), *words, cpus=set_of(self.cpus)) as running:
            trace = recorded_transactions(running.pid) if self.is_traced else nullcontext(None)
            with trace as report:
                figures = running.ask("begin")
        if not figures.pop("is_right"):
            raise CellFailed("what the transactions wrote is not what they must have written")
        return figures if report is None else figures | _seen(report, figures["commits"])


def _seen(report: Mapping[str, object], commits: int) -> Figures:
    totals, restarts, inevitable = report["totals"], report["restarts"], report["inevitable"]
    assert isinstance(totals, dict)
    assert isinstance(restarts, dict)
    assert isinstance(inevitable, dict)
    if totals["commits"] != commits and not totals["lost_events"]:
        raise CellFailed(f"gilscope counted {totals['commits']} commits of {commits}")
    return {
        "seen": totals["commits"] / commits,
        "lost_s": totals["abort_cost_s"],
        "restarts": sum(restarts.values()),
        "restarts_per_100": 100 * sum(restarts.values()) / commits,
        "irrevocable_per_100": 100 * sum(inevitable.values()) / commits,
        "reasons": restarts,
    }


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        return [
            _Run(arm, 2, is_traced=True, cpus="one", milliseconds=200).cell()
            for arm in ("primes/time", "astar/shared")
        ]
    runs = [_Run(arm, threads) for threads in _THREADS for arm in _ARMS]
    runs += [_Run(arm, 2, is_traced=True) for arm in _ARMS]
    return [each.cell() for each in runs]


def _body(results: Results) -> str:
    rates, seen = [], []
    for key, arm in _ARMS.items():
        rates.append(
            (
                arm.title,
                *(
                    shown(results, "commits_per_s", 0, "/s", arm=key, threads=each, mode="untraced")
                    for each in _THREADS
                ),
                _gain_words(results, key),
            )
        )
        traced: dict[str, str | float] = {"arm": key, "threads": 2, "mode": "traced"}
        seen.append(
            (
                arm.title,
                shown(results, "commits_per_s", 0, "/s", **traced),
                shown(results, "irrevocable_per_100", 1, **traced),
                shown(results, "restarts_per_100", 1, **traced),
                ", ".join(_reasons(results, traced)) or NONE,
            )
        )
    threads = [f"{each} thread{'s' * (each > 1)}" for each in _THREADS]
    header = ["transactions", *threads, "2 threads by 1"]
    traced_header = [
        *("2 threads, traced", "transactions", "irrevocable, for 100"),
        *("restarts, for 100", "by reason"),
    ]
    return _TEXT + table(header, rates) + _ADDS + table(traced_header, seen)


def _reasons(results: Results, here: Mapping[str, str | float]) -> Iterator[str]:
    """Yield the most frequent reasons of all rounds, with their shares."""
    sums: dict[str, int] = {}
    for each in results.measured(**here):
        reasons = each.figures["reasons"]
        for reason, count in reasons.items() if isinstance(reasons, dict) else ():
            sums[reason] = sums.get(reason, 0) + count
    whole = sum(sums.values())
    for reason, count in sorted(sums.items(), key=lambda item: -item[1])[:_MOST_REASONS]:
        if count:
            yield f"{reason} {100 * count / whole:.0f} %"


def _gain(results: Results, arm: str, threads: int) -> float | None:
    rates = [
        spread_of(results, "commits_per_s", arm=arm, threads=each, mode="untraced")[0]
        for each in (1, threads)
        if results.values("commits_per_s", arm=arm, threads=each, mode="untraced")
    ]
    return rates[1] / rates[0] if len(rates) > 1 else None


def _gain_words(results: Results, arm: str) -> str:
    gain = _gain(results, arm, 2)
    return f"{gain:.2f}" if gain else NONE


def _pictures(results: Results) -> Mapping[str, str]:
    lines, restarts = [], []
    for key, arm in _ARMS.items():
        points = [
            Point(threads, gain)
            for threads in _THREADS
            if (gain := 1.0 if threads == 1 else _gain(results, key, threads))
        ]
        if len(points) > 1:
            lines.append(Series(arm.title, points))
        if results.values("restarts_per_100", arm=key, mode="traced"):
            restarts.append(key)
    if not lines:
        return {}
    source = _SOURCE["requests_per_s"]["PyPy-STM, 1 to 4 threads"]
    points = [Point(number + 1, rate / source[0]) for number, rate in enumerate(source)]
    lines.append(Series("PyPy-STM, the source", points, is_source=True))
    picture = Lines(
        "Transactions that scale, and what keeps others from it",
        "commits a second by those of one thread, two CPUs; the source's machine had four cores",
        Axis("threads", labels=[(each, str(each)) for each in range(1, 5)]),
        Axis("times one thread"),
        lines,
    )
    pictures = {"stm_scaling.svg": draw_lines(picture)}
    if restarts:
        subtitle = "2 threads on two CPUs, median and range"
        groups = [
            Group(title, list(_bars(results, restarts, figure, kind)))
            for figure, title, kind in _COUNTED
        ]
        chart = Chart(
            "Restarts, and what is made irrevocable", subtitle, groups, 0, "", own_scales=True
        )
        pictures["stm_scaling-restarts.svg"] = draw(chart)
    return pictures


def _bars(results: Results, arms: Sequence[str], figure: str, kind: Kind) -> Iterator[Bar]:
    for key in arms:
        yield Bar(_ARMS[key].title, *spread_of(results, figure, arm=key, mode="traced"), kind)


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    gains = {arm: _gain(results, arm, 2) for arm in _ARMS}
    found = {}
    if gains["primes/time"]:
        text = f"libitm, time() in each: 2 threads do {gains['primes/time']:.2f} times what 1 does"
        found["S3"] = (text, "yes" if gains["primes/time"] < 1.2 else "no")
    if gains["primes/own"]:
        text = f"libitm, nothing shared: {gains['primes/own']:.2f} times (the source: 1.76)"
        found["S6"] = (text, "yes" if gains["primes/own"] > 1.4 else "no")
    if gains["astar/shared"] and gains["astar/own"]:
        text = f"libitm: {gains['astar/shared']:.2f} times, {gains['astar/own']:.2f} on own maps"
        found["S13"] = (text, "see the page")
    shared, own = (
        results.values("restarts", arm=arm, mode="traced")
        for arm in ("primes/counter", "primes/own")
    )
    if shared and own:
        text = f"libitm: {shared[0]:.0f} restarts with one counter, {own[0]:.0f} with several"
        found["S10"] = (text, "yes" if shared[0] >= 10 * max(own[0], 1) else "no")
    return found


EXPERIMENT = Experiment(
    name="stm_scaling",
    title="What keeps live transactions from scaling",
    sources=("S3", "S6", "S10", "S13"),
    source=_SOURCE,
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
