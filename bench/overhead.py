"""Measures what tracing costs a target, in one interleaved run, and writes docs/overhead.md.

Takes minutes and wants a machine that does nothing else. The raw measurements go to .cache/bench.
"""

import argparse
import dataclasses
import datetime as dt
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.attach import measure_attach
from bench.conditions import CONDITIONS, GILSCOPE
from bench.machine import StolenTime, read_machine
from bench.measurement import Attach, Results, Run
from bench.page import page
from bench.rounds import Bench
from bench.tool import ToolFailed
from bench.works import WORKS

from accuracy.truth import WorkloadFailed
from gilscope.kernel.headers import find_headers
from interpreter_sources.interpreter import Interpreter, Unavailable
from interpreter_sources.local import Pyenv, SystemPython

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_RAW = _ROOT / ".cache" / "bench"
_ROUNDS = 7
_PIECES = 5
_QUICK_DIVISOR = 20
_WITH_SYMBOLS = (Pyenv("3.12"), Pyenv("3.11"))
_STRIPPED = SystemPython("system", Path("/usr/bin/python3"))


def main() -> int:
    """Measure, write the page and the raw figures, and return the exit code."""
    options = _parse_options()
    try:
        with tempfile.TemporaryDirectory() as cache:
            results = _measure(options, _tool_environment(cache))
    except (ToolFailed, WorkloadFailed, Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _RAW.mkdir(parents=True, exist_ok=True)
    raw = _RAW / ("quick.json" if options.quick else "overhead.json")
    raw.write_text(json.dumps(dataclasses.asdict(results), indent=1))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(results))
    print(f"{options.output} ({raw})")
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, help=f"so many rounds (default: {_ROUNDS})")
    parser.add_argument(
        "--quick", action="store_true", help="one round with little work: does the bench run?"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: docs/overhead.md")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else _ROUNDS
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.output is None:
        # A quick run must not replace a real one.
        options.output = _RAW / "quick.md" if options.quick else _ROOT / "docs" / "overhead.md"
    return options


def _measure(options: argparse.Namespace, environment: dict[str, str]) -> Results:
    load_before, stolen = os.getloadavg()[0], StolenTime()
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    interpreter = _find_interpreter()
    bench = Bench(
        interpreter=interpreter,
        environment=environment,
        rounds=options.rounds,
        pieces=_PIECES,
        divisor=_QUICK_DIVISOR if options.quick else 1,
    )
    usable, reasons = bench.find_usable(CONDITIONS)
    if GILSCOPE.key in reasons:
        raise ToolFailed(f"gilscope {reasons[GILSCOPE.key]}")
    total = options.rounds * len(WORKS) * len(usable)
    runs = tuple(_with_progress(bench.run(WORKS, usable), total))
    traced = _interpreters(interpreter)
    attaches: list[Attach] = []
    for each in traced:
        attaches += measure_attach(each, options.rounds, environment)
    titles = {condition.key: condition.title for condition in CONDITIONS}
    return Results(
        machine=read_machine(traced),
        date=date,
        command=shlex.join(["python", "bench/overhead.py", *sys.argv[1:]]),
        rounds=options.rounds,
        is_quick=options.quick,
        load_before=load_before,
        stolen=stolen.share(),
        interpreter=interpreter.name,
        runs=runs,
        attaches=tuple(attaches),
        left_out=tuple((titles[key], reason) for key, reason in reasons.items()),
    )


def _tool_environment(cache: str) -> dict[str, str]:
    """Return the environment of the tools: headers for BCC, and a cache of their own."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    headers = find_headers(os.environ, os.uname().release)
    if headers is not None:
        environment["BCC_KERNEL_SOURCE"] = str(headers)
    return environment


def _find_interpreter() -> Interpreter:
    """Return one whose symbols the peers can use, or else the system's, which gilscope can."""
    for source in _WITH_SYMBOLS:
        try:
            return source.find(_RAW)
        except Unavailable:
            continue
    return _find_stripped()


def _interpreters(first: Interpreter) -> list[Interpreter]:
    try:
        second = _find_stripped()
    except Unavailable:
        return [first]
    return [first] if second.elf == first.elf else [first, second]


def _find_stripped() -> Interpreter:
    _STRIPPED.fetch(_RAW)
    return _STRIPPED.find(_RAW)


def _with_progress(runs: Iterable[Run], total: int) -> Iterable[Run]:
    is_terminal = sys.stderr.isatty()
    for number, run in enumerate(runs, 1):
        if is_terminal:
            print(
                f"\r{number}/{total} {run.workload}, {run.condition}\033[K",
                end="" if number < total else "\n",
                file=sys.stderr,
                flush=True,
            )
        yield run


if __name__ == "__main__":
    sys.exit(main())
