"""Holds what reports estimate of a change against the changed program, recorded beside it.

Each arm is a process of `advised.py`; all of a round are traced by one `record`, so that the same
machine is compared with itself. Prints the median of all rounds, and by how much what was measured
is outside of the estimate: a fifth is the bar.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from accuracy.truth import started
from support.commands.gilscope import gilscope_started

__all__ = ["main"]

_PYTHON = ["/usr/bin/python3"]
_NUMBER = "100"
_INTERVALS_S = ("0.05", "0.005", "0.0005")
_HOLDERS = {"turns": "the holder sleeps in C", "spins": "the holder computes"}
_BAR = 0.2
_MS_PER_S = 1000


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5, metavar="N")
    rounds = [_round() for _ in range(options.parse_args().rounds)]
    print("| change | before | estimate | measured | deviation | within 20 % |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name in rounds[0]:
        before, least, most, measured = (
            statistics.median(each[name][at] for each in rounds) for at in range(4)
        )
        away = _deviation(least, most, measured)
        words = f"{least:.3g} ms" if least == most else f"{least:.3g} to {most:.3g} ms"
        verdict = "yes" if abs(away) <= _BAR else "NO"
        print(
            f"| {name} | {before:.3g} ms | {words} | {measured:.3g} ms | {away:+.0%} | {verdict} |"
        )


def _deviation(least: float, most: float, measured: float) -> float:
    """Return how far the nearest of what was estimated is from *measured*, as a part of that."""
    return (min(max(measured, least), most) - measured) / measured


def _round() -> dict[str, tuple[float, float, float, float]]:
    """Return what there was before, the estimate's least and most, and what there was after, ms."""
    arms: dict[str, tuple[str, ...]] = {
        f"{kind} {each}": (kind, each, _NUMBER) for kind in _HOLDERS for each in _INTERVALS_S
    }
    arms |= {"both": ("places", _NUMBER, "slow", "quick"), "one": ("places", _NUMBER, "quick")}
    reports = _recorded(arms)
    found = {}
    for kind, whose in _HOLDERS.items():
        for now, shorter in pairwise(_INTERVALS_S):
            change = _change(reports[f"{kind} {now}"], "switch_interval")
            waits = _convoy_waits(reports[f"{kind} {shorter}"])
            found[f"switch interval {now} s to {shorter} s, a wait, {whose}"] = (
                change["mean_wait_s"] * _MS_PER_S,
                change["least_wait_s"] * _MS_PER_S,
                change["most_wait_s"] * _MS_PER_S,
                waits["wait_s"] / waits["waits"] * _MS_PER_S,
            )
    both_s, one_s = (reports[arm]["totals"]["wait_s"] for arm in ("both", "one"))
    left_s = both_s - _change(reports["both"], "other_process")["saved_s"]
    found["slow place in another process, all waits"] = (
        both_s * _MS_PER_S,
        left_s * _MS_PER_S,
        left_s * _MS_PER_S,
        one_s * _MS_PER_S,
    )
    return found


def _recorded(arms: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "all.json"
        workloads = {
            name: stack.enter_context(started(_PYTHON, "advised.py", *arguments))
            for name, arguments in arms.items()
        }
        pids = [argument for each in workloads.values() for argument in ("-p", str(each.pid))]
        command = stack.enter_context(gilscope_started("record", *pids, "-o", str(file)))
        for _ in workloads:
            command.says("Tracing the GIL of")
        for each in workloads.values():
            each.run()
        for each in workloads.values():
            each.finish()
        command.outcome()
        processes = {
            each["process"]["pid"]: each for each in json.loads(file.read_text())["processes"]
        }
        return {name: processes[each.pid] for name, each in workloads.items()}


def _change(report: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    (change,) = (each for each in report["changes"] if each["change"] == kind)
    return dict(change)


def _convoy_waits(report: Mapping[str, Any]) -> Mapping[str, Any]:
    (waits,) = (
        thread["kinds"]["GIL_CONVOY"]
        for thread in report["threads"]
        if (thread["role"] or "").startswith("come_back")
    )
    return dict(waits)


if __name__ == "__main__":
    main()
