"""Measures what tracing costs a target, in one interleaved run, and writes docs/overhead.md.

Prints the last table of it: each figure beside its bar.

Takes minutes and wants a machine that does nothing else. The raw measurements go to .cache/bench.
"""

import argparse
import datetime as dt
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.agent_tables import bar_table
from bench.attach import measure_attach, measure_start
from bench.conditions import BASELINE, CONDITIONS, CONTENTION, DEFAULT, Condition
from bench.machine import StolenTime, read_machine
from bench.measurement import Attach, Crowd, Failure, Results, Run, Start
from bench.page import page
from bench.pictures import draw_pictures
from bench.raw import read_results, write_results
from bench.rounds import Bench
from bench.scale import BUSY, MANY, measure_crowd
from bench.stm_page import stm_section
from bench.tool import ToolFailed, tool_environment
from bench.works import WORKS

from accuracy.truth import WorkloadFailed
from support.interpreters.interpreter import Interpreter, Unavailable
from support.interpreters.local import Pyenv, SystemPython

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_RAW = _ROOT / ".cache" / "bench"
_ROUNDS = 5
_QUICK_DIVISOR = 8
_WITH_SYMBOLS = (Pyenv("3.12"), Pyenv("3.11"))
_STRIPPED = SystemPython("system", Path("/usr/bin/python3"))


def main() -> int:
    """Measure, write the page and the raw figures, and return the exit code."""
    # Tools are ended by SIGINT; what a script has started in its background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _parse_options()
    raw = _RAW / ("quick.json" if options.quick else "overhead.json")
    try:
        if options.again:
            results = read_results(raw)
        else:
            with tempfile.TemporaryDirectory() as cache:
                results = _measure(options, tool_environment(cache))
            write_results(results, raw)
    except (OSError, ValueError, ToolFailed, WorkloadFailed, Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _write_page(results, options.output)
    print(f"{bar_table(results)}\n{options.output} ({raw})")
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, help=f"so many rounds (default: {_ROUNDS})")
    parser.add_argument(
        "--quick", action="store_true", help="one round with little work: does the bench run?"
    )
    parser.add_argument(
        "--again", action="store_true", help="write the page again from the last measurement"
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


def _write_page(results: Results, output: Path) -> None:
    pictures = draw_pictures(results)
    folder = output.parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        (folder / picture.name).write_text(picture.svg)
    output.write_text(page(results, pictures, stm_section()))


def _measure(options: argparse.Namespace, environment: dict[str, str]) -> Results:
    load_before, stolen, began_s = os.getloadavg()[0], StolenTime(), time.monotonic()
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    interpreter = _find_interpreter()
    divisor = _QUICK_DIVISOR if options.quick else 1
    bench = Bench(interpreter, environment, options.rounds, divisor)
    compared = [condition for condition in CONDITIONS if condition is not BASELINE]
    usable, reasons = bench.find_usable(compared)
    if CONTENTION.key in reasons:
        raise ToolFailed(f"gilscope {reasons[CONTENTION.key]}")
    done: list[Run | Crowd | Attach | Failure] = []
    starts: list[Start] = []
    done += _with_progress(bench.run(WORKS, usable), _count(options.rounds, usable))
    default = DEFAULT if DEFAULT in usable else CONTENTION
    done += _measure_crowds(bench, dict.fromkeys((default, CONTENTION)))
    traced = _interpreters(interpreter)
    for each in traced:
        _say(f"attach to {each.name}")
        done += measure_attach(each, default, options.rounds, environment)
        starts += [measure_start(environment) for _ in range(options.rounds)]
    _say("")
    titles = {condition.key: condition.title for condition in CONDITIONS}
    return Results(
        machine=read_machine(traced),
        date=date,
        command=shlex.join(["python", "bench/overhead.py", *sys.argv[1:]]),
        took_s=time.monotonic() - began_s,
        rounds=options.rounds,
        is_quick=options.quick,
        load_before=load_before,
        stolen=stolen.share(),
        interpreter=interpreter.name,
        runs=tuple(each for each in done if isinstance(each, Run)),
        failures=tuple(each for each in done if isinstance(each, Failure)),
        attaches=tuple(each for each in done if isinstance(each, Attach)),
        starts=tuple(starts),
        crowds=tuple(each for each in done if isinstance(each, Crowd)),
        left_out=tuple((titles[key], reason) for key, reason in reasons.items()),
    )


def _measure_crowds(bench: Bench, conditions: Iterable[Condition]) -> Iterator[Crowd | Failure]:
    """Yield the many in the default mode, and the busy ones in each of *conditions*."""
    many, busy = (plan.reduced(bench.divisor) for plan in (MANY, BUSY))
    for number, condition in enumerate(conditions):
        for plan in (busy,) if number else (many, busy):
            _say(f"{plan.processes} {plan.key} targets, {condition.title}")
            try:
                yield measure_crowd(plan, condition, bench.interpreter, bench.environment)
            except ToolFailed as error:
                yield Failure(0, plan.key, condition.key, str(error))


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


def _count(rounds: int, usable: Sequence[Condition]) -> int:
    """Return how many runs there will be: each one that is compared, and those around them."""
    compared = [sum(map(work.is_for, usable)) for work in WORKS]
    return rounds * sum(2 * count + 1 for count in compared)


def _with_progress(runs: Iterable[Run | Failure], total: int) -> Iterator[Run | Failure]:
    for number, run in enumerate(runs, 1):
        _say(f"{number}/{total} {run.workload}, {run.condition}")
        yield run


def _say(progress: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{progress}\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
