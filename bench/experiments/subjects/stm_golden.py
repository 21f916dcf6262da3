"""The five conflicts that two texts of 2014 print, from logs made to have them."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.markdown import table
from bench.svg import Bar, Chart, Group, draw

from support.stm_log.golden import GOLDEN_ENTRIES

__all__ = ["EXPERIMENT", "stm_report"]

_ROWS = ("S4", "S8", "S8", "S9", "S14")
_PLACES = (
    "httpserver.py:455",
    "web.py:1082",
    "transaction.py:164",
    "_weakrefset.py:70",
    "transaction.py:164, A*",
)
_KEYS = [f"{row}, {place}" for row, place in zip(_ROWS, _PLACES, strict=True)]

_TEXT = """\
**All five entries come out of `gilscope stm report --semantics S0 --compat` letter by letter; \
counted as later tools did, part of what they call lost was paused.**

The texts of November 2014 print these conflicts of Tornado on PyPy-STM with the tool of that \
time, `print_stm_log.py`.
Their logs are lost, so five were made that have the same conflicts: as many of each kind, which \
lost as much together, and each with a pause of 0.05 ms, which that tool did not know.
The entries on the left are the source's, those on the right ours.
"""
_ADDS = """\
## What gilscope adds

- What one conflict costs: 11.8 ms on average at `time.time()`, 368 ms at the conflict of A*. The texts sort by the sum alone, so a conflict that is rare and costly looks like one that is frequent and cheap.
- `S0` counts all the time from the start of a transaction to its abort as lost, pauses too, and so prints `0.000s paused` always. `S1` has been what the tool did since a week later. The made pauses are small and known, so the two columns below differ by exactly them.
- A real log shows how large pauses are: [Tornado on PyPy-STM](stm_tornado.md) was paused for 49 s and lost half a second.
"""


def stm_report(*words: str) -> str:
    """Return what ``gilscope stm report`` prints; raises CellFailed."""
    command = [sys.executable, "-m", "gilscope", "stm", "report", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CellFailed(done.stderr.strip())
    return done.stdout


def _measure() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.log" for number in range(len(GOLDEN_ENTRIES))]
        for path, entry in zip(paths, GOLDEN_ENTRIES, strict=True):
            path.write_bytes(entry.log())
        words = ["--merge", "none", *map(str, paths)]
        text = stm_report("--semantics", "S0", "--compat", *words)
        later = json.loads(stm_report("--semantics", "S1", "--format", "json", *words))
    printed = [part.strip("\n") for part in text.split("\n\n") if "lost in aborts" in part]
    if printed != [entry.text for entry in GOLDEN_ENTRIES]:
        raise CellFailed(f"{printed} are not the entries of the source")
    rows: list[Figures] = []
    for key, entry, path in zip(_KEYS, GOLDEN_ENTRIES, paths, strict=True):
        [s1] = [
            each for each in later["files"][str(path)]["entries"] if each["count"] == entry.count
        ]
        rows.append(
            {
                "key": key,
                "entry": printed[len(rows)],
                "source_entry": entry.text,
                "count": entry.count,
                "lost_s": entry.lost_ns / 1e9,
                "mean_loss_ms": entry.lost_ns / 1e6 / entry.count,
                "s1_lost_s": s1["lost_s"],
                "s1_paused_s": s1["paused_s"],
            }
        )
    return {"rows": rows}


def _cells(_is_quick: bool) -> Sequence[Cell]:
    return [Cell("entries", {}, "one", 4.0, _measure, rounds=1, timed=False)]


def _rows(results: Results) -> list[Figures]:
    return [row for outcome in results.measured() for row in outcome.figures["rows"]]


def _body(results: Results) -> str:
    rows, entries = [], []
    for figures in _rows(results):
        left, right = (_cell(figures[each]) for each in ("source_entry", "entry"))
        entries.append((figures["key"].partition(",")[0], left, right))
        rows.append(
            (
                figures["key"],
                str(figures["count"]),
                f"{figures['lost_s']:.3f} s",
                f"{figures['mean_loss_ms']:.1f} ms",
                f"{figures['s1_lost_s']:.3f} s",
                f"{figures['s1_paused_s']:.3f} s",
            )
        )
    header = ["", "conflicts", "S0: lost", "S0: lost by each", "S1: lost", "S1: paused"]
    return "\n".join(
        [_TEXT, table(["", "the source", "gilscope"], entries), _ADDS, table(header, rows)]
    )


def _cell(entry: str) -> str:
    return "<br>".join(f"`{line.strip()}`" for line in entry.splitlines())


def _pictures(results: Results) -> Mapping[str, str]:
    bars = []
    for row in _rows(results):
        mean_ms = row["mean_loss_ms"]
        bars.append(Bar(row["key"], mean_ms, mean_ms, mean_ms, "ours"))
    chart = Chart(
        "What one conflict cost, from the five entries of 2014",
        "time lost in aborts by the number of conflicts, in milliseconds",
        [Group("", bars)],
        1,
        " ms",
    )
    return {"stm_golden.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    same = "the entry is equal letter by letter, from a made log"
    return {row: (same, "yes") for row in dict.fromkeys(_ROWS) if results.outcomes}


EXPERIMENT = Experiment(
    name="stm_golden",
    title="The five conflicts of 2014, printed again",
    sources=("S4", "S8", "S9", "S12", "S14"),
    source={key: entry.text for key, entry in zip(_KEYS, GOLDEN_ENTRIES, strict=True)},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
