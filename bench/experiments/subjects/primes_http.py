"""Requests for primes: threads under a GIL, processes, PyPy, and what threads wait for."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.extensions import with_tornado
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import OWN, PROGRAMS, client_cpus, program, set_of
from bench.experiments.runtimes import FREE_THREADED, MAIN, RUNTIMES, Runtime, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_SOURCE = {
    "PyPy 2.4": 14.4,
    "CPython 2.7": 3.2,
    "PyPy-STM, 1 thread": 9.3,
    "PyPy-STM, 2 threads": 16.4,
    "PyPy-STM, 3 threads": 20.4,
    "PyPy-STM, 4 threads": 24.2,
}
_LIMIT = 1000
_SECONDS = 2.0
_WORKERS = (1, 2, 4)
_CLIENTS = (1, 5, 50)
_LIMITS = (200, 1000)
_TORNADO = Runtime("tornado", "Tornado 6, CPython 3.11", ("debian-3.11", "pyenv-3.11"))
"""Answers are made in an executor's threads."""
_OTHERS = ("3.11", "3.15", "pypy3", "tornado")
_ALL = (*RUNTIMES, _TORNADO, FREE_THREADED)

_TEXT = f"""\
The source's server returns the primes up to N by trial division, and `siege -c 50` asks for those up to 10,000 for 20 s.
PyPy-STM scales with its threads, and two of them beat PyPy.
Here a server on the standard library has so many worker threads; requests are for the primes up to {_LIMIT:,} unless another number stands there, so that two seconds have enough answers.
A live PyPy-STM is not to be had; what its log says is in [Tornado on PyPy-STM](stm_tornado.md).

"""
_ADDS = """
## What gilscope adds

*held* is the share of the time for which the GIL was held, and *threads waiting* how many threads waited for it on average.
With a GIL that is always held, another thread makes no request faster: it waits, and that is one more thread waiting.

"""

_WITHOUT = """
## Without a GIL

A free-threaded build runs the workers on both CPUs, less what the client takes of them.

"""
_SEEN = ("requests", "the same, traced", "held", "threads waiting")


@dataclass(frozen=True, slots=True)
class _Arm:
    runtime: Runtime
    workers: int
    clients: int
    limit: int
    is_traced: bool = False
    cpus: str = "two"
    seconds: float = _SECONDS
    rounds: int = 5

    def cell(self) -> Cell:
        how = "traced" if self.is_traced else "untraced"
        axes: dict[str, str | float] = {
            "runtime": self.runtime.key,
            "workers": self.workers,
            "clients": self.clients,
            "limit": self.limit,
            "mode": how,
        }
        key = f"{self.runtime.key}/{self.workers} workers/{self.clients} clients/{self.limit}/{how}"
        takes_s = self.seconds + (3.0 if self.is_traced else 2.0)
        return Cell(key, axes, self.cpus, takes_s, self.measure, self.rounds)

    def measure(self) -> Figures:
        interpreter, kind = find(self.runtime), "pool"
        if self.runtime is _TORNADO:
            interpreter, kind = with_tornado(interpreter), "tornado"
        words = ("http_servers.py", kind, 0, self.workers)
        with (
            program(interpreter, *words, cpus=set_of(self.cpus)) as server,
            recorded(server.pid) if self.is_traced else nullcontext(None) as report,
        ):
            load = str(PROGRAMS.parent / "load.py")
            asked = (server.first["port"], f"/{self.limit}", 0, self.seconds, self.clients)
            with program(OWN, load, *asked, cpus=client_cpus(self.cpus)) as client:
                figures = client.first
        if figures["failed"] or not figures["requests"]:
            raise CellFailed(f"{figures['requests']} answers, {figures['failed']} failed")
        if report is not None:
            totals = report.process["totals"]
            if totals["held_s"] is not None:
                figures["held"] = totals["held_s"] / max(totals["sampled_s"], 1e-9)
            figures["threads_waiting"] = totals["wait_s"] / report.process["duration_s"]
        return figures


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        return [_Arm(MAIN, 2, 2, 100, is_traced=True, cpus="one", seconds=0.2).cell()]
    arms = [
        _Arm(MAIN, workers, 50, _LIMIT, is_traced)
        for workers in _WORKERS
        for is_traced in (False, True)
    ]
    arms += [
        _Arm(MAIN, 4, clients, limit, rounds=4)
        for clients in _CLIENTS
        for limit in _LIMITS
        if (clients, limit) != (50, _LIMIT)
    ]
    arms += [
        _Arm(runtime, 4, 50, _LIMIT, is_traced, rounds=3)
        for runtime in _ALL
        if runtime.key in _OTHERS
        for is_traced in (False, True)
    ]
    arms += [_Arm(FREE_THREADED, workers, 50, _LIMIT, rounds=3) for workers in _WORKERS]
    return [arm.cell() for arm in arms]


def _body(results: Results) -> str:
    usual: dict[str, str | float] = {"clients": 50, "limit": _LIMIT}
    threads = [
        (
            f"{MAIN.title}, {workers} worker{'s' if workers > 1 else ''}",
            shown(
                results,
                "requests_per_s",
                1,
                "/s",
                runtime=MAIN.key,
                workers=workers,
                mode="untraced",
                **usual,
            ),
            shown(
                results,
                "requests_per_s",
                1,
                "/s",
                runtime=MAIN.key,
                workers=workers,
                mode="traced",
                **usual,
            ),
            shown(results, "held", 2, runtime=MAIN.key, workers=workers, mode="traced", **usual),
            shown(
                results,
                "threads_waiting",
                2,
                runtime=MAIN.key,
                workers=workers,
                mode="traced",
                **usual,
            ),
        )
        for workers in _WORKERS
    ]
    runtimes = []
    for runtime in _ALL:
        if runtime not in {MAIN, FREE_THREADED} and runtime.key not in _OTHERS:
            continue
        here: dict[str, str | float] = {"runtime": runtime.key, "workers": 4, **usual}
        traced = [
            shown(results, "requests_per_s", 1, "/s", mode="traced", **here),
            shown(results, "held", 2, mode="traced", **here),
            shown(results, "threads_waiting", 2, mode="traced", **here),
        ]
        runtimes.append(
            (
                runtime.title,
                shown(results, "requests_per_s", 1, "/s", mode="untraced", **here),
                *(["no GIL", NONE, NONE] if runtime is FREE_THREADED else traced),
            )
        )
    unlocked = [
        shown(
            results,
            "requests_per_s",
            1,
            "/s",
            runtime=FREE_THREADED.key,
            workers=workers,
            mode="untraced",
            **usual,
        )
        for workers in _WORKERS
    ]
    shapes = [
        (
            str(clients),
            *(
                shown(
                    results,
                    "requests_per_s",
                    1,
                    "/s",
                    runtime=MAIN.key,
                    workers=4,
                    clients=clients,
                    limit=limit,
                    mode="untraced",
                )
                for limit in _LIMITS
            ),
        )
        for clients in _CLIENTS
    ]
    source = [(name, f"{rate}/s") for name, rate in _SOURCE.items()]
    return "".join(
        [
            _TEXT + table(["the source, N = 10,000", "requests"], source),
            "\n" + table(["ours, 4 workers", *_SEEN], runtimes),
            _ADDS + table(["threads", *_SEEN], threads),
            _WITHOUT,
            table(
                ["", *(f"{each} worker{'s' * (each > 1)}" for each in _WORKERS)],
                [(FREE_THREADED.title, *unlocked)],
            ),
            "\n## Fewer clients, lighter requests\n\nThe source says: fewer clients, slightly worse; lighter requests, much worse.\n\n",
            table(["clients", *(f"N = {limit:,}" for limit in _LIMITS)], shapes),
        ]
    )


def _pictures(results: Results) -> Mapping[str, str]:
    ours = []
    for runtime in _ALL:
        for workers in _WORKERS:
            here: dict[str, str | float] = {
                "runtime": runtime.key,
                "workers": workers,
                "clients": 50,
                "limit": _LIMIT,
                "mode": "untraced",
            }
            if results.values("requests_per_s", **here):
                ends = spread_of(results, "requests_per_s", **here)
                ours.append(Bar(f"{runtime.title}, workers: {workers}", *ends, "ours"))
    if not ours:
        return {}
    theirs = [Bar(name, rate, rate, rate, "peer") for name, rate in _SOURCE.items()]
    groups = [
        Group(f"here, primes up to {_LIMIT:,}", ours),
        Group("the source, primes up to 10,000", theirs),
    ]
    chart = Chart(
        "Requests for primes", "requests a second, 50 clients", groups, 1, "/s", own_scales=True
    )
    return {"primes_http.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    def rate(**axes: str | float) -> float | None:
        here = {"runtime": MAIN.key, "workers": 4, "clients": 50, "limit": _LIMIT, **axes}
        values = sorted(results.values("requests_per_s", mode="untraced", **here))
        return values[len(values) // 2] if values else None

    found = {}
    four, one, pypy = rate(), rate(workers=1), rate(runtime="pypy3")
    if four and one:
        found["S2"] = found["S3"] = (
            f"CPython: 4 threads do {four / one:.2f} times what 1 does",
            "no scaling, as without transactions",
        )
    if four and pypy:
        found["S6"] = (
            f"PyPy is {pypy / four:.1f} times CPython (the source: 4.5)",
            "of PyPy; no live PyPy-STM",
        )
    few, light = rate(clients=5), rate(limit=200)
    if four and few and light:
        found["S7"] = (
            f"5 clients: {few / four:.2f} times; N = 200: {light / four:.1f} times",
            "of a GIL, not of STM",
        )
    return found


EXPERIMENT = Experiment(
    name="primes_http",
    title="Requests for primes",
    sources=("S2", "S3", "S6", "S7"),
    source={"requests_per_s": _SOURCE},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
