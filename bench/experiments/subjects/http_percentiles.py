"""Latency by percentile of small HTTP servers, alone and beside a computing thread."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.extensions import with_tornado
from bench.experiments.load import SHARES, at_share
from bench.experiments.pages import shown
from bench.experiments.plots import Axis, Lines, Point, Series, draw_lines
from bench.experiments.processes import OWN, PROGRAMS, Program, client_cpus, program, set_of
from bench.experiments.runtimes import MAIN, RUNTIMES, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table

from support.interpreters.interpreter import Interpreter

__all__ = ["EXPERIMENT"]

_SERVERS = {
    "asyncio": "a bare protocol on asyncio",
    "threads": "a thread for each connection",
    "tornado": "Tornado 6, on CPython 3.11",
    "node": "Node",
}
_TRACED = ("asyncio", "threads", "tornado")
_TORNADO_ON = next(each for each in RUNTIMES if each.key == "3.11")
_CONNECTIONS = 8
_SATURATE_S = 0.7
_SECONDS = 3.0
_LOAD = 0.6
_SOURCE_ENDS_MS = (3.707, 7.203)
_SOURCE_LABEL_MS = 1.544

_TEXT = f"""\
The source plots the latency of three servers by percentile, under `wrk2 -c 8 -t 8 -d 25 -R 50000 /json`: requests at a fixed rate, timed from when each was due.
Three figures stand in its picture: 1.544 ms at 99.9993 %, and 3.707 and 7.203 ms for the slowest requests; which server each is of is not in the text.
Here {_CONNECTIONS} connections ask for `/json` at {100 * _LOAD:.0f} % of the rate that the server can do at most, which is measured first, and each server is run alone and beside one thread that computes.
Node has no GIL and is the control.
*due* is from when a request was due, *sent* from when it could be sent: a generator that waits for answers leaves out the difference.

"""
_ADDS = """
## How much of it is the GIL?

*more* is what a request took on average beside a computing thread more than alone, traced both times; *waited* is what gilscope says that the threads that answer waited for the GIL, by the number of requests.
The waits are each counted by itself here, so that their percentiles are exact.

"""


def _measure(server: str, spin: int, seconds: float, cpus: str, is_traced: bool) -> Figures:
    with _started(server, spin, cpus) as running:
        port = running.first["port"]
        fastest = _load(port, 0, min(seconds, _SATURATE_S), cpus)
        rate = max(2.0, _LOAD * fastest["requests_per_s"])
        with recorded(running.pid, spans=True) if is_traced else nullcontext(None) as report:
            figures = _load(port, rate, seconds, cpus)
    if figures["failed"] or figures["requests"] != round(rate * seconds):
        raise CellFailed(f"{figures['requests']} answers, {figures['failed']} failed")
    figures |= {"fastest_per_s": fastest["requests_per_s"], "rate_per_s": rate}
    if report is not None:
        answering = [each for each in report.process["threads"] if "spin " not in each["role"]]
        tids = {each["tid"] for each in answering}
        waits = sorted(
            round(each["dur"] * 1000)
            for each in report.spans
            if each.get("cat") == "wait" and each.get("tid") in tids
        )
        if not spin and server in {"asyncio", "tornado"} and waits:
            raise CellFailed(f"{len(waits)} waits where no other thread is")
        wait_s = sum(each["wait_s"] for each in answering)
        figures |= {
            "waits": len(waits),
            "wait_ms_a_request": 1000 * wait_s / figures["requests"],
            "wait_p99_ms": at_share(waits, 0.99) / 1e6 if waits else 0.0,
            "wait_max_ms": waits[-1] / 1e6 if waits else 0.0,
        }
    return figures


def _started(server: str, spin: int, cpus: str) -> AbstractContextManager[Program]:
    if server == "tornado":
        interpreter = with_tornado(find(_TORNADO_ON))
        return program(interpreter, "http_servers.py", server, spin, 0, cpus=set_of(cpus))
    if server != "node":
        return program(find(MAIN), "http_servers.py", server, spin, 1, cpus=set_of(cpus))
    node = shutil.which("node")
    if node is None:
        raise CellFailed("Node is not installed")
    control = Interpreter("node", (0, 0, 0), (node,), Path(node), stripped=True)
    return program(control, "http_server.js", cpus=set_of(cpus))


def _load(port: int, rate: float, seconds: float, cpus: str) -> Figures:
    words = ("/json", rate, seconds, _CONNECTIONS)
    with program(
        OWN, str(PROGRAMS.parent / "load.py"), port, *words, cpus=client_cpus(cpus)
    ) as load:
        return load.first


def _cell(server: str, spin: int, seconds: float, cpus: str, *, is_traced: bool) -> Cell:
    how = "traced" if is_traced else "untraced"
    return Cell(
        f"{server}/{spin}/{how}",
        {"server": server, "spin": spin, "mode": how},
        cpus,
        seconds + _SATURATE_S + (2.2 if is_traced else 1.0),
        partial(_measure, server, spin, seconds, cpus, is_traced),
        rounds=3 if server == "tornado" else 5,
    )


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        quick = [_cell("asyncio", spin, 0.3, "one", is_traced=not spin) for spin in (0, 1)]
        return [*quick, _cell("tornado", 0, 0.3, "one", is_traced=True)]
    cells = [
        _cell(server, spin, _SECONDS, "two", is_traced=is_traced)
        for server in _TRACED
        for spin in (0, 1)
        for is_traced in (False, True)
    ]
    return [*cells, _cell("node", 0, _SECONDS, "two", is_traced=False)]


def _arms() -> Iterator[tuple[str, str, int]]:
    for server, title in _SERVERS.items():
        yield title, server, 0
        if server != "node":
            yield f"{title}, beside a computing thread", server, 1


def _body(results: Results) -> str:
    rows, shares = [], []
    for title, server, spin in _arms():
        here: dict[str, str | float] = {"server": server, "spin": spin, "mode": "untraced"}
        rows.append(
            (
                title,
                shown(results, "rate_per_s", 0, "/s", **here),
                *(
                    _at(results, kind, share, here)
                    for kind, share in (
                        ("due_ms", 0.5),
                        ("due_ms", 0.99),
                        ("sent_ms", 0.99),
                        ("due_ms", 1.0),
                    )
                ),
                _at(results, "due_ms", 0.99, {**here, "mode": "traced"})
                if server != "node"
                else "not traced",
            )
        )
    header = [
        "server",
        "rate",
        "half within, due",
        "99 % within, due",
        "99 % within, sent",
        "slowest, due",
        "99 %, due, traced",
    ]
    for server in _TRACED:
        beside: dict[str, str | float] = {"server": server, "spin": 1, "mode": "traced"}
        more = _more_ms(results, server)
        waited = results.values("wait_ms_a_request", **beside)
        share = (
            f"{100 * sorted(waited)[len(waited) // 2] / more:.0f} %" if waited and more else NONE
        )
        shares.append(
            (
                _SERVERS[server],
                f"{more:.2f} ms" if more else NONE,
                shown(results, "wait_ms_a_request", 2, " ms", **beside),
                share,
                shown(results, "wait_p99_ms", 2, " ms", **beside),
                shown(results, "waits", 0, server=server, spin=0, mode="traced"),
            )
        )
    explained = [
        "server",
        "more",
        "waited",
        "waited by more",
        "99 % of the waits within",
        "waits alone",
    ]
    return _TEXT + table(header, rows) + _ADDS + table(explained, shares)


def _more_ms(results: Results, server: str) -> float:
    beside = results.values("mean_ms", server=server, spin=1, mode="traced")
    alone = results.values("mean_ms", server=server, spin=0, mode="traced")
    if not beside or not alone:
        return 0.0
    return sorted(beside)[len(beside) // 2] - sorted(alone)[len(alone) // 2]


def _values_at(
    results: Results, kind: str, share: float, here: Mapping[str, str | float]
) -> list[float]:
    place = SHARES.index(share)
    return sorted(each.figures[kind][place] for each in results.measured(**here))


def _at(results: Results, kind: str, share: float, here: Mapping[str, str | float]) -> str:
    values = _values_at(results, kind, share, here)
    if not values:
        return shown(results, kind, 0, **here) if results.reasons(**here) else NONE
    return f"{values[len(values) // 2]:.2f} ms [{values[0]:.2f}..{values[-1]:.2f}]"


def _pictures(results: Results) -> Mapping[str, str]:
    body, tail = [], []
    for title, server, spin in _arms():
        here: dict[str, str | float] = {"server": server, "spin": spin, "mode": "untraced"}
        if not any(results.measured(**here)):
            continue
        medians = {share: _middle(_values_at(results, "due_ms", share, here)) for share in SHARES}
        short = title.replace("a bare protocol on ", "").replace(
            "a thread for each connection", "threads"
        )
        body.append(
            Series(short, [Point(100 * each, medians[each]) for each in SHARES if each in _TENTHS])
        )
        tail.append(
            Series(
                short,
                [Point(number + 1, max(1e-3, medians[each])) for number, each in enumerate(_TAIL)],
            )
        )
    if not body:
        return {}
    ends = [Point(100, each) for each in (_SOURCE_LABEL_MS, *_SOURCE_ENDS_MS)]
    body.append(Series("labels in the source's plot", ends, is_source=True, has_line=False))
    tail.append(Series("the source: 99.9993 %", [Point(5, _SOURCE_LABEL_MS)], is_source=True))
    title = f"{_CONNECTIONS} connections at {100 * _LOAD:.0f} % of the greatest rate, from when each was due"
    percentiles = Axis(
        "per cent of the requests", labels=[(10 * each, str(10 * each)) for each in range(11)]
    )
    labels = [(number + 1, f"{100 * share:g} %") for number, share in enumerate(_TAIL)]
    return {
        "http_percentiles.svg": draw_lines(
            Lines("Latency by percentile", title, percentiles, Axis("ms", is_log=True), body)
        ),
        "http_percentiles-tail.svg": draw_lines(
            Lines(
                "The slowest requests",
                title,
                Axis("of the requests", labels=labels),
                Axis("ms", is_log=True),
                tail,
            )
        ),
    }


_TENTHS = tuple(each for each in SHARES if round(each * 10, 6) == round(each * 10))
_TAIL = (0.9, 0.99, 0.999, 0.9999, 0.99999)


def _middle(values: Sequence[float]) -> float:
    return max(1e-3, values[len(values) // 2])


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    alone, beside = (
        _at(results, "due_ms", 0.99, {"server": "asyncio", "spin": spin, "mode": "untraced"})
        for spin in (0, 1)
    )
    rate = shown(results, "fastest_per_s", 0, "/s", server="asyncio", spin=0, mode="untraced")
    return {
        "S18": (f"asyncio does {rate} at most", "no figure there"),
        "S20": (
            f"99 % within {alone}; beside a computing thread {beside}",
            "other servers, other rate",
        ),
    }


EXPERIMENT = Experiment(
    name="http_percentiles",
    title="Latency by percentile",
    sources=("S18", "S20"),
    source={
        "at_99.9993_percent_ms": _SOURCE_LABEL_MS,
        "slowest_ms": _SOURCE_ENDS_MS,
        "command": "wrk2 --latency -U -c 8 -t 8 -d 25 -R 50000 /json",
    },
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
