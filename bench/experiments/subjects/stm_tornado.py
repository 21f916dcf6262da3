"""Tornado, primes and A* on a real PyPy-STM: where the threads' time went."""

import json
import lzma
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.subjects.stm_golden import stm_report
from bench.markdown import table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_LOGS = Path(__file__).resolve().parents[3] / "docs" / "examples" / "stm-logs"
_NAMES = {
    "tornado": "pypystm-tornado-primes-4t.log",
    "primes": "pypystm-primes-seedera-time-4t.log",
    "astar": "pypystm-astar-4t.log",
}
_TITLES = {
    "tornado": "Tornado, primes, 4 threads",
    "primes": "primes without Tornado, time.time() inside",
    "astar": "A* on a shared map, 4 threads",
}
_SHARES = {
    "committed_s": "committed",
    "aborted_s": "aborted",
    "paused_s": "paused",
    "detached_s": "detached",
    "unfinished_s": "no end in the log",
    "paused_outside_s": "waiting outside",
}
_MOST_APART_S = 2e-6
_PLACES = {
    "S4": 'httpserver.py", line 455',
    "S8": 'web.py", line 1082',
    "S9": '_weakrefset.py", line 70',
    "S10": "_grab_next_thing_to_do",
}
_PLACE_TITLES = {
    "S4": "`time.time()`, httpserver.py:455",
    "S8": "`hashlib.sha1()`, web.py:1082",
    "S9": "_weakrefset.py:70",
    "S10": "the queue within transaction.py",
}
_SOURCE = {
    "S4": "14.793 s lost, 0.000 s paused, 1258x INEVITABLE",
    "S8": "14.153 s lost, 0.000 s paused, 270x INEVITABLE",
    "S9": "83.066 s lost, 0.000 s paused, 459x WRITE_WRITE (without etag)",
    "S10": "13.484 s lost, 0.000 s paused, 130x WRITE_READ (line 164)",
    "S12": "no pauses reported; long ones expected",
}

_TEXT = """\
**The threads of Tornado on PyPy-STM were paused, not aborted: two thirds of their time, a hundred \
times what conflicts threw away. The tool of 2014 printed `0.000s paused` beside each conflict.**

The texts of November 2014 ask why Tornado does not scale on PyPy-STM, and list conflicts by the \
time "lost in aborts".
A comment there suspects that there are pauses as well, which the tool did not report (S12).
It was right.
The logs are of the same Tornado with the same transactions on a PyPy-STM of 2017, without JIT, on \
two cores; they lie in [docs/examples/stm-logs](../examples/stm-logs/README.md).
So the places are the source's and the seconds are not.

## Where the time of the threads went

"""
_PLACES_TEXT = """
## The source's places in the log of Tornado

"""
_ADDS = """
## What gilscope adds

- **S12, the pauses**: `aborted` and `paused` are apart, and each wait is charged once, to the conflict that it is for. `STM_WAIT_OTHER_INEVITABLE` is nearly all of them: one thread at a time may be inevitable, and the others wait for it.
- **S4**: the call of `time.time()` is seen at the source's very line, and what it costs is pause: a transaction that calls out becomes inevitable and is never rolled back.
- **S8 and S9**: not in this log. Another PyPy-STM three years later had other conflicts; why these are gone no log says.
- **S10**: the transaction module's own queue is still there, at the line at which the next thing to do is fetched.
- **S11**, no scaling and no conflict that costs time, left no log. Where a thread waits without any conflict, `gilscope stm report` says so: `Outside of them` is time before a transaction could begin, and `detached` is time outside with a transaction left open. The tool of 2014 has neither, so all its figures can be small while the threads stand still.
- **S14**: A* is the other case. Its threads hardly pause, and throw three quarters of their work away.

The figures of `gilscope stm report --compat` are the original tool's to 2 µs, for all totals and \
all conflicts of these logs; the corrected ones above also charge what that tool \
[loses](../stm.md#what-the-original-loses-and-where-its-time-is-here).
"""


def _measure(key: str) -> Figures:
    name = _NAMES[key]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(lzma.decompress((_LOGS / f"{name}.xz").read_bytes()))
        original = _file(stm_report("--compat", "--format", "json", "-n", "1000", str(path)))
        ours = _file(stm_report("--format", "json", "-n", "1000", str(path)))
    known = json.loads((_LOGS / "figures.json").read_text())[name]
    _compare(original, known)
    return {
        "records": ours["records"],
        "total_time_s": ours["totals"]["total_time_s"],
        "commits": ours["totals"]["commits"],
        "aborts": ours["totals"]["aborts"],
        **{share: ours["totals"][share] for share in _SHARES},
        "places": {row: _place(ours["entries"], part) for row, part in _PLACES.items()},
        "waits": ours["totals"]["waits"],
    }


def _file(report: str) -> dict[str, Any]:
    [file] = json.loads(report)["files"].values()
    assert isinstance(file, dict)
    return file


def _compare(original: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise CellFailed where the figures are not those of the original tool."""
    for name, value in known["totals"].items():
        if abs(original["totals"][name] - value) > _MOST_APART_S:
            raise CellFailed(f"{name}: {original['totals'][name]}, and the original {value}")
    ours = {_of(each): each for each in original["entries"]}
    for entry in known["entries"]:
        mine = ours.get(_of(entry))
        if mine is None or any(
            abs(mine[name] - entry[name]) > _MOST_APART_S for name in ("lost_s", "paused_s")
        ):
            raise CellFailed(f"{mine}, and the original {entry}")


def _of(entry: Mapping[str, Any]) -> tuple[str, int, tuple[str, ...]]:
    return entry["kind"], entry["count"], tuple(entry["markers"])


def _place(entries: Sequence[Mapping[str, Any]], part: str) -> dict[str, float]:
    there = [each for each in entries if any(part in marker for marker in each["markers"])]
    return {
        "count": sum(each["count"] for each in there),
        "lost_s": sum(each["lost_s"] for each in there),
        "paused_s": sum(each["paused_s"] for each in there),
    }


def _cells(is_quick: bool) -> Sequence[Cell]:
    keys = ["primes"] if is_quick else list(_NAMES)
    return [
        Cell(key, {"log": key}, "one", 4.0, partial(_measure, key), rounds=1, timed=False)
        for key in keys
    ]


def _body(results: Results) -> str:
    shares, places = [], []
    for key, title in _TITLES.items():
        for outcome in results.measured(log=key):
            figures = outcome.figures
            whole_s = sum(figures[share] for share in _SHARES)
            shares.append(
                (
                    title,
                    f"{figures['total_time_s']:.3f} s",
                    *(
                        f"{figures[share]:.3f} s ({100 * figures[share] / whole_s:.0f} %)"
                        for share in _SHARES
                    ),
                )
            )
    for outcome in results.measured(log="tornado"):
        for row, place in outcome.figures["places"].items():
            seen = (
                f"{place['lost_s']:.3f} s lost, {place['paused_s']:.3f} s paused,"
                f" {place['count']:.0f}x"
            )
            places.append(
                (
                    row,
                    _PLACE_TITLES[row],
                    _SOURCE[row],
                    seen if place["count"] else "not in the log",
                )
            )
    return "\n".join(
        [
            _TEXT + table(["log", "real time", *_SHARES.values()], shares),
            _PLACES_TEXT + table(["", "place", "the source, 2014", "ours"], places),
            _ADDS,
        ]
    )


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for key, title in _TITLES.items():
        for outcome in results.measured(log=key):
            whole_s = sum(outcome.figures[share] for share in _SHARES)
            bars = []
            for share, label in _SHARES.items():
                value = 100 * outcome.figures[share] / whole_s
                bars.append(Bar(label, value, value, value, "ours"))
            groups.append(Group(title, bars))
    chart = Chart(
        "Where the time of the threads went",
        "per cent of the time of all threads in the log; 2014's tool had committed and aborted",
        groups,
        1,
        " %",
    )
    return {"stm_tornado.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    found = {}
    for outcome in results.measured(log="tornado"):
        figures = outcome.figures
        for row, place in figures["places"].items():
            if place["count"]:
                paused = f"{place['paused_s']:.3f} s paused, {place['count']:.0f}x, at that place"
                found[row] = (paused, "the place yes; the cost is pause")
        found["S1"] = (
            f"{figures['commits']} transactions committed, {figures['aborts']} aborted",
            "-",
        )
        wait = figures["waits"]["STM_WAIT_OTHER_INEVITABLE"]
        waited = f"{wait['waits']} waits for one that was inevitable, {wait['wait_s']:.1f} s"
        found["S5"] = (waited, "yes")
        found["S11"] = ("explained where such time is shown; that log is lost", "-")
        found["S14"] = ("another conflict of A* in a real log: 12.8 s lost at its move", "-")
        found["S12"] = (
            f"{figures['paused_s']:.1f} s paused, {figures['aborted_s']:.1f} s aborted",
            "as expected there",
        )
    return found


EXPERIMENT = Experiment(
    name="stm_tornado",
    title="Tornado on PyPy-STM: paused, not aborted",
    sources=("S1", "S4", "S5", "S8", "S9", "S10", "S11", "S12", "S14"),
    source=_SOURCE,
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
