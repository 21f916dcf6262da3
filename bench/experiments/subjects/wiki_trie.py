"""Titles from a trie in C: an extension that switches the GIL of a free-threaded build on."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.extensions import with_extensions
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import OWN, PROGRAMS, client_cpus, program, set_of
from bench.experiments.runtimes import FREE_THREADED, TWIN, Runtime, find
from bench.experiments.tracing import recorded
from bench.markdown import NONE, table
from bench.svg import Bar, Chart, Group, draw

from support.interpreters.interpreter import Interpreter
from support.paths import ROOT

__all__ = ["EXPERIMENT"]

_TITLES, _QUICK_TITLES = 200_000, 2_000
_PREFIX, _ONE_IN = "Python a", 104
"""Of the program's titles, one in so many begins so."""
_FIRST = "Python aaaa"
_CLIENTS = (1, 4)
_SECONDS = 1.5
_NO_GIL = 7
"""gilscope's exit code for a process that runs without one."""

_TEXT = f"""\
The source's demonstration of PyParallel is a server that finds pages of Wikipedia: titles are in a trie (datrie, a module in C), their places in the file in an array of NumPy, and an answer is a list of first and last bytes, or the page.
It asks which such modules survive without a GIL, and says that NumPy does and datrie crashes.
Here are {_TITLES:,} made titles and their pages; each request is for the {_TITLES // _ONE_IN + 1:,} pages whose title begins with `{_PREFIX}`, and the answer is compared with what it must be.
datrie 0.8.3 is compiled for each build, unchanged.

"""
_SAID = """
## What gilscope says

A module in C that does not declare `Py_mod_gil` makes a free-threaded CPython switch its GIL on when it is imported, for the rest of the process's life.
NumPy declares it, datrie does not: that is today's form of what the source saw.
gilscope tells the two states of one build apart, traces the one and refuses the other.

"""
_ADDS = """
## What it costs

*held* is the share of the time for which the GIL was held, and *threads waiting* how many threads waited for it on average.
With the GIL switched on, four clients get what a build with a GIL gives them, and why is in the table above.
`PYTHON_GIL=0` keeps it off at one's own risk: datrie is only read here, and what the source saw may still come.

"""


@dataclass(frozen=True, slots=True)
class _Arm:
    title: str
    runtime: Runtime
    index: str
    has_gil: bool
    env: Mapping[str, str]


_ARMS = {
    "3.14/trie": _Arm("3.14, trie", TWIN, "trie", has_gil=True, env={}),
    "3.14/list": _Arm("3.14, sorted list", TWIN, "list", has_gil=True, env={}),
    "3.14t/trie": _Arm("3.14t, trie", FREE_THREADED, "trie", has_gil=True, env={}),
    "3.14t/trie/off": _Arm(
        "3.14t, trie, PYTHON_GIL=0", FREE_THREADED, "trie", has_gil=False, env={"PYTHON_GIL": "0"}
    ),
    "3.14t/list": _Arm("3.14t, sorted list", FREE_THREADED, "list", has_gil=False, env={}),
}


def _interpreter(runtime: Runtime) -> Interpreter:
    found = with_extensions(find(runtime), free_threaded=runtime is FREE_THREADED)
    return replace(found, env={**found.env, "PYTHONWARNINGS": "ignore"})


def _made(titles: int) -> Path:
    """Return the folder with so many pages; they are made once."""
    folder = ROOT / ".cache" / "bench" / f"wiki-{titles}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = ("wiki_trie.py", "make", str(folder), titles)
        with program(_interpreter(TWIN), *words, cpus=set_of("one")) as maker:
            if maker.first != {"made": titles}:
                raise CellFailed("the pages were not made")
        (folder / "done").touch()
    return folder


@dataclass(frozen=True, slots=True)
class _Requests:
    arm: str
    clients: int
    is_traced: bool = False
    cpus: str = "two"
    titles: int = _TITLES
    seconds: float = _SECONDS

    def cell(self) -> Cell:
        how = "traced" if self.is_traced else "untraced"
        axes: dict[str, str | float] = {"arm": self.arm, "clients": self.clients, "mode": how}
        takes_s = self.seconds + (2.5 if self.is_traced else 1.2)
        key = f"{self.arm}/{self.clients}/{how}"
        return Cell(key, axes, self.cpus, takes_s, self.measure, rounds=3)

    def measure(self) -> Figures:
        arm, folder = _ARMS[self.arm], _made(self.titles)
        words = ("wiki_trie.py", arm.index, str(folder))
        with program(_with_env(arm), *words, cpus=set_of(self.cpus)) as server:
            if server.first["has_gil"] != arm.has_gil:
                raise CellFailed(f"the GIL is {'on' if server.first['has_gil'] else 'off'}")
            port = server.first["port"]
            _check(port, self.titles)
            trace = recorded(server.pid) if self.is_traced else nullcontext(None)
            asked = (port, f"/offsets/{_PREFIX.replace(' ', '%20')}", 0, self.seconds, self.clients)
            load = str(PROGRAMS.parent / "load.py")
            with (
                trace as report,
                program(OWN, load, *asked, cpus=client_cpus(self.cpus)) as client,
            ):
                figures = client.first
        if figures["failed"] or not figures["requests"]:
            raise CellFailed(f"{figures['requests']} answers, {figures['failed']} failed")
        if report is not None:
            totals = report.process["totals"]
            figures["python"] = report.process["process"]["python"]
            figures["held"] = totals["held_s"] / max(totals["sampled_s"], 1e-9)
            figures["threads_waiting"] = totals["wait_s"] / report.process["duration_s"]
        return figures


def _with_env(arm: _Arm) -> Interpreter:
    found = _interpreter(arm.runtime)
    return replace(found, env={**found.env, **arm.env})


def _check(port: int, titles: int) -> None:
    """Raise CellFailed if what the server answers is not what it must be."""
    found = json.loads(_get(port, f"/offsets/{_PREFIX}"))
    page = _get(port, f"/wiki/{_FIRST}")
    if len(found) != -(-titles // _ONE_IN) or found[0][0] != _FIRST:
        raise CellFailed(f"{len(found)} titles begin with {_PREFIX}")
    whole = page.startswith(b"<page>") and page.endswith(b"</page>")
    if not whole or len(page) != found[0][2] + 1 - found[0][1] or _FIRST.encode() not in page:
        raise CellFailed("the bytes of a page are not those of the page")


def _get(port: int, path: str) -> bytes:
    url = f"http://127.0.0.1:{port}{path.replace(' ', '%20')}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
    return body


def _said(key: str, titles: int, cpus: str) -> Figures:
    """Return what gilscope says of the server while nobody asks it for anything."""
    arm, folder = _ARMS[key], _made(titles)
    command = [sys.executable, "-m", "gilscope", "record", "-d", "0.5", "--pid"]
    with program(
        _with_env(arm), "wiki_trie.py", arm.index, str(folder), cpus=set_of(cpus)
    ) as server:
        done = subprocess.run(
            [*command, str(server.pid)],
            check=False,
            capture_output=True,
            text=True,
            env=OWN.environment(),
        )
    expected = 0 if arm.has_gil else _NO_GIL
    if done.returncode != expected:
        raise CellFailed(f"gilscope ended with {done.returncode}: {done.stderr.strip()}")
    # How long it looked is of no interest, nor is the process's number.
    lines = (done.stdout if arm.has_gil else done.stderr).strip().splitlines()
    first = lines[0].rpartition(": ")[0] if arm.has_gil else lines[0]
    return {"exit_code": done.returncode, "answer": first.replace(str(server.pid), "PID")}


def _said_cell(key: str, titles: int, cpus: str) -> Cell:
    axes: dict[str, str | float] = {"arm": key, "mode": "said"}
    measure = partial(_said, key, titles, cpus)
    return Cell(f"{key}/said", axes, cpus, 3.0, measure, rounds=1, timed=False)


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        arms = [("3.14t/trie", True), ("3.14t/list", False)]
        quick = [
            _Requests(key, 2, traced, "one", _QUICK_TITLES, seconds=0.2).cell()
            for key, traced in arms
        ]
        return [*quick, *(_said_cell(key, _QUICK_TITLES, "one") for key, _ in arms)]
    cells = [_Requests(key, clients).cell() for key in _ARMS for clients in _CLIENTS]
    cells += [_Requests(key, 4, is_traced=True).cell() for key, arm in _ARMS.items() if arm.has_gil]
    return [*cells, *(_said_cell(key, _TITLES, "two") for key in _ARMS)]


def _body(results: Results) -> str:
    said, rows = [], []
    for key, arm in _ARMS.items():
        answer, code = NONE, NONE
        for outcome in results.measured(arm=key, mode="said"):
            answer, code = str(outcome.figures["answer"]), str(outcome.figures["exit_code"])
        said.append((arm.title, "on" if arm.has_gil else "off", answer, code))
        traced: dict[str, str | float] = {"arm": key, "clients": 4, "mode": "traced"}
        rows.append(
            (
                arm.title,
                *(
                    shown(
                        results,
                        "requests_per_s",
                        0,
                        "/s",
                        arm=key,
                        clients=clients,
                        mode="untraced",
                    )
                    for clients in _CLIENTS
                ),
                *(
                    (
                        shown(results, "requests_per_s", 0, "/s", **traced),
                        shown(results, "held", 2, **traced),
                        shown(results, "threads_waiting", 2, **traced),
                    )
                    if arm.has_gil
                    else ("no GIL", NONE, NONE)
                ),
            )
        )
    header = ["", "1 client", "4 clients", "4, traced", "held", "threads waiting"]
    return "".join(
        [
            *(_TEXT, _SAID, table(["server", "GIL", "gilscope says", "exit code"], said)),
            *(_ADDS, table(header, rows)),
        ]
    )


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for clients in _CLIENTS:
        bars = [
            Bar(
                arm.title,
                *spread_of(results, "requests_per_s", arm=key, clients=clients, mode="untraced"),
                "ours" if arm.has_gil else "peer",
            )
            for key, arm in _ARMS.items()
            if results.values("requests_per_s", arm=key, clients=clients, mode="untraced")
        ]
        if bars:
            groups.append(Group(f"{clients} client{'s' if clients > 1 else ''}", bars))
    if not groups:
        return {}
    subtitle = "requests a second, two CPUs, median and range; green: with a GIL, orange: without"
    chart = Chart("Titles by prefix", subtitle, groups, 0, "/s")
    return {"wiki_trie.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    def rate(arm: str) -> float | None:
        here: dict[str, str | float] = {"arm": arm, "clients": 4, "mode": "untraced"}
        if not results.values("requests_per_s", **here):
            return None
        return spread_of(results, "requests_per_s", **here)[0]

    with_gil, switched, off = rate("3.14/trie"), rate("3.14t/trie"), rate("3.14t/list")
    found = {}
    if with_gil and switched:
        text = f"4 clients: 3.14t does {switched / with_gil:.2f} times what 3.14 does"
        found["S21"] = (text, "no figure there")
    if switched and off:
        forced = "survives" if rate("3.14t/trie/off") else "has no figure"
        text = f"datrie switches the GIL on, NumPy does not; with it kept off datrie {forced}"
        found["S22"] = (text, "in today's form")
    return found


EXPERIMENT = Experiment(
    name="wiki_trie",
    title="Titles from a trie: a module that wants the GIL",
    sources=("S21", "S22"),
    source={"S21": "code, and no figure", "S22": "a trie crashes, NumPy does not"},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
