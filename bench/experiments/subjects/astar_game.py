"""The game with A* on a shared map: threads under a GIL, one thread, processes."""

import random
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.pages import shown, spread_of
from bench.experiments.processes import program, set_of
from bench.experiments.runtimes import FREE_THREADED, MAIN, find
from bench.experiments.tracing import recorded
from bench.markdown import table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_ARMS = {
    "alone": "one thread plays for all",
    "threads": "four threads",
    "no_gil": "four threads without a GIL, 3.14t",
    "processes": "four processes, a shared map",
}
_PLAYERS = (8, 24)
_SOURCE = {
    "PyPy 2.4": (5.0, 7.0),
    "CPython 2.7": (0.5, 0.9),
    "PyPy-STM, 1 thread": (2.0, 4.0),
    "PyPy-STM, 4 threads": (2.0, 6.0),
}
_TURNS = {8: 200, 24: 70}
_SIZE, _WALLS_BEFORE = 24, 100
"""Of the program's map."""

_TEXT = """\
Players move on a map, build and destroy walls, and ask for shortest paths by A*.
The source ran it with Tornado on PyPy-STM and calls it a very bad benchmark: chance decides who meets whom, so it gives bounds, in requests a second.
Here the turns of each player come from a seed, and toggling a wall twice undoes it, so that the map at the end must be the same in each arm and each round; a cell whose map is another one has no figure.
A game on a live PyPy-STM is not to be had; its log of such a game is in [Tornado on PyPy-STM](stm_tornado.md).

"""
_ADDS = """
## What gilscope adds

Four threads under one GIL do what one does: the GIL is held nearly always (*held*), and three of the four wait for it (*threads waiting*).
Four processes have a GIL each, and on two CPUs they can at most do twice as much.
A free-threaded build has no GIL to wait for: its threads share both CPUs, and the map, whose walls are toggled under one lock.

"""


@dataclass(frozen=True, slots=True)
class _Game:
    arm: str
    players: int
    turns: int
    is_traced: bool = False
    cpus: str = "two"

    def cell(self) -> Cell:
        how = "traced" if self.is_traced else "untraced"
        axes: dict[str, str | float] = {"arm": self.arm, "players": self.players, "mode": how}
        takes_s = 2.0 + (1.3 if self.is_traced else 0.4)
        return Cell(f"{self.arm}/{self.players}/{how}", axes, self.cpus, takes_s, self.measure)

    def measure(self) -> Figures:
        is_locked = self.arm != "no_gil"
        arm, runtime = (self.arm, MAIN) if is_locked else ("threads", FREE_THREADED)
        words = ("astar_game.py", arm, self.players, self.turns)
        with (
            program(find(runtime), *words, cpus=set_of(self.cpus)) as game,
            recorded(game.pid) if self.is_traced else nullcontext(None) as report,
        ):
            figures = game.ask("begin")
        walls = (self.turns + 4) // 5
        if figures["paths"] != self.players * (self.turns - walls):
            raise CellFailed(f"{figures['paths']} paths were asked for")
        if figures["checksum"] != self.expected():
            raise CellFailed("the map at the end is not that of the seed")
        if report is not None:
            totals = report.process["totals"]
            figures["held"] = totals["held_s"] / max(totals["sampled_s"], 1e-9)
            figures["threads_waiting"] = totals["wait_s"] / figures["took_s"]
        return figures

    def expected(self) -> int:
        """Return the checksum of the map at the end, from the seeds alone."""
        cells = bytearray(_SIZE * _SIZE)
        chance = random.Random(0)  # noqa: S311 - chance that is the same in every run
        for _ in range(_WALLS_BEFORE):
            cells[chance.randrange(_SIZE * _SIZE)] = 1
        for player in range(self.players):
            chance = random.Random(player)  # noqa: S311 - likewise
            for turn in range(self.turns):
                places = [chance.randrange(_SIZE * _SIZE) for _ in range(1 if turn % 5 == 0 else 2)]
                if len(places) == 1:
                    cells[places[0]] ^= 1
        return zlib.crc32(bytes(cells))


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        games = [
            _Game("threads", 8, 10, is_traced=True, cpus="one"),
            _Game("processes", 8, 10, cpus="one"),
        ]
    else:
        games = [
            _Game(arm, players, _TURNS[players], is_traced=is_traced)
            for players in _PLAYERS
            for arm in _ARMS
            for is_traced in ((False,) if arm in {"processes", "no_gil"} else (False, True))
        ]
    return [game.cell() for game in games]


def _body(results: Results) -> str:
    rows = []
    for players in _PLAYERS:
        for arm, title in _ARMS.items():
            here: dict[str, str | float] = {"players": players, "arm": arm}
            rows.append(
                (
                    str(players),
                    title,
                    shown(results, "paths_per_s", 0, "/s", mode="untraced", **here),
                    shown(results, "paths_per_s", 0, "/s", mode="traced", **here),
                    shown(results, "held", 2, mode="traced", **here),
                    shown(results, "threads_waiting", 2, mode="traced", **here),
                )
            )
    source = [(name, f"{low:g} .. {high:g}") for name, (low, high) in _SOURCE.items()]
    header = ["players", "who plays", "paths", "the same, traced", "held", "threads waiting"]
    return f"{_TEXT}{table(['the source', 'requests/s'], source)}{_ADDS}{table(header, rows)}"


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for players in _PLAYERS:
        bars = [
            Bar(
                title,
                *spread_of(results, "paths_per_s", players=players, arm=arm, mode="untraced"),
                "ours",
            )
            for arm, title in _ARMS.items()
            if results.values("paths_per_s", players=players, arm=arm, mode="untraced")
        ]
        if bars:
            groups.append(Group(f"here, {players} players, paths a second", bars))
    if not groups:
        return {}
    theirs = [
        Bar(name, (low + high) / 2, low, high, "peer") for name, (low, high) in _SOURCE.items()
    ]
    groups.append(Group("the source, requests a second: middle and bounds", theirs))
    chart = Chart(
        "A* on a shared map",
        f"{MAIN.title}, two CPUs, median and range",
        groups,
        1,
        "/s",
        own_scales=True,
    )
    return {"astar_game.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    rates = [
        sorted(results.values("paths_per_s", players=24, arm=arm, mode="untraced")) for arm in _ARMS
    ]
    if not all(rates):
        return {}
    alone, *others = (each[len(each) // 2] for each in rates)
    threads, no_gil, processes = (each / alone for each in others)
    text = (
        f"4 threads {threads:.2f} times one, without a GIL {no_gil:.2f}, processes {processes:.2f}"
    )
    return {"S13": (text, "of a GIL; no live PyPy-STM")}


EXPERIMENT = Experiment(
    name="astar_game",
    title="A* on a shared map",
    sources=("S13", "S14"),
    source={"requests_per_s": _SOURCE},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
