"""Runs the experiments of the sources again, and writes a page for each.

Wants a machine that does nothing else; what was measured is kept, and a second run continues.
"""

import argparse
import datetime as dt
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.experiments import store
from bench.experiments.cells import MEASURED, Experiment, Results
from bench.experiments.pages import index, page
from bench.experiments.running import Runner, planned, planned_s
from bench.experiments.table import EXPERIMENTS
from bench.machine import read_machine

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = _ROOT / "bench" / "experiments" / "results"
_PAGES = _ROOT / "docs" / "experiments"
_QUICK = _ROOT / ".cache" / "bench" / "experiments"
_S_PER_MIN = 60


def main(words: Sequence[str] | None = None) -> int:
    """Run, write the pages, and return 1 if a quick run has a cell that did not come out."""
    # Tools are ended by SIGINT; what a script has started in its background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _options(words)
    chosen = [each for each in EXPERIMENTS if options.only in ("", each.name)]
    if not chosen:
        names = ", ".join(each.name for each in EXPERIMENTS)
        print(f"error: no experiment is called {options.only}; there are {names}", file=sys.stderr)
        return 2
    if options.plan:
        _print_plan(chosen, is_quick=options.quick)
        return 0
    results_in, pages_in = (
        (options.folder / "results", options.folder)
        if options.quick
        else (
            _RESULTS,
            _PAGES,
        )
    )
    if options.quick or options.afresh:
        for each in chosen:
            (results_in / f"{each.name}.json").unlink(missing_ok=True)
    failed = 0
    if not options.pages:
        deadline_s = time.monotonic() + options.within * _S_PER_MIN
        runner = Runner(results_in, _about(options), options.quick, deadline_s, _tell)
        done = [runner.run(each) for each in chosen]
        if options.quick:
            states = [each for results in done for each in results.outcomes]
            failed = sum(each.state != MEASURED for each in states)
    _write_pages(results_in, pages_in)
    return 1 if failed else 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make experiments", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="one round, for correctness alone")
    parser.add_argument("--plan", action="store_true", help="say what would be run")
    parser.add_argument("--pages", action="store_true", help="write the pages again, run nothing")
    parser.add_argument("--afresh", action="store_true", help="forget what was measured")
    parser.add_argument("--within", type=float, default=60.0, metavar="MINUTES")
    parser.add_argument("--folder", type=Path, default=_QUICK, help="of what a quick run writes")
    return parser.parse_args(words)


def _print_plan(chosen: Sequence[Experiment], *, is_quick: bool) -> None:
    whole_s = 0.0
    for each in chosen:
        cells = list(each.cells(is_quick))
        runs = sum(1 for _ in planned(cells, is_quick=is_quick))
        takes_s = planned_s(cells, is_quick=is_quick)
        whole_s += takes_s
        print(f"{each.name:18} {len(cells):3} cells {runs:4} runs {takes_s / _S_PER_MIN:6.1f} min")
    print(f"{'all':18} {'':9} {'':9} {whole_s / _S_PER_MIN:6.1f} min")


def _write_pages(results_in: Path, pages_in: Path) -> None:
    pages_in.mkdir(parents=True, exist_ok=True)
    pictures_in = pages_in / "pictures"
    found: dict[str, tuple[str, str]] = {}
    for experiment in EXPERIMENTS:
        results = store.read(experiment.name, results_in)
        pictures = dict(_pictures(experiment, results))
        pictures_in.mkdir(exist_ok=True)
        for name, picture in pictures.items():
            (pictures_in / name).write_text(picture)
        (pages_in / f"{experiment.name}.md").write_text(page(experiment, results, pictures))
        if any(each.state == MEASURED for each in results.outcomes):
            for key, (ours, shape) in experiment.found(results).items():
                before = found.get(key)
                found[key] = (f"{before[0]}; {ours}", before[1]) if before else (ours, shape)
    (pages_in / "README.md").write_text(index(found, EXPERIMENTS))
    print(pages_in / "README.md")


def _pictures(experiment: Experiment, results: Results) -> dict[str, str]:
    if not any(each.state == MEASURED for each in results.outcomes):
        return {}
    return dict(experiment.pictures(results))


def _about(options: argparse.Namespace) -> dict[str, str | float]:
    machine = read_machine([])
    where = "a virtual machine" if machine.is_virtual else "no hypervisor seen"
    return {
        "CPU": f"{machine.cpu}, {machine.cpus} usable, {where}",
        "kernel": machine.kernel,
        "system": machine.system,
        **dict(machine.versions[:2]),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": f"`{_command(options)}`",
        "load average": round(os.getloadavg()[0], 2),
    }


def _command(options: argparse.Namespace) -> str:
    return "make experiments" + f" ONLY={options.only}" * bool(options.only)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
