"""Measures what tracing costs other Pythons than today's, and writes docs/overhead-runtimes.md.

CPython 2.7, 3.6 and 3.7 and PyPy: while nobody waits for the GIL, and while two threads fight for
it. Traced and untraced runs take turns, and beside gilscope stands the plainest BCC program.
"""

import argparse
import datetime as dt
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.conditions import gilscope_command
from bench.machine import StolenTime, read_machine
from bench.markdown import key_table, ranged, table
from bench.peers import takes_printed, three_probes_command
from bench.pieces import Target, target_started
from bench.tool import ToolFailed, tool_environment, tool_started

from support.interpreters.known import Interpreter, Unavailable, find_interpreter

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_WORK = _ROOT / "tests" / "workloads" / "bench_any_python.py"
_PAGE = _ROOT / "docs" / "overhead-runtimes.md"
_RUNTIMES: dict[str, Sequence[str]] = {
    "pyenv-2.7": ("PyThread_acquire_lock", "PyThread_release_lock"),
    "debian-2.7": ("PyThread_acquire_lock", "PyThread_release_lock"),
    "pyenv-3.6": ("take_gil", "drop_gil"),
    "pyenv-3.7": ("take_gil", "drop_gil"),
    "pypy-bullseye": (),
    "pypy3-trixie": (),
}
"""With the functions that take and drop the GIL where they have names."""
_UNITS = {"alone": 100_000, "fight": 200_000}
_ROUNDS = 5
_PLAIN = "Tracing"
"""What the plain program prints when its probes are in place."""

_Start = Callable[[int], list[str]]
"""The command of a tool, for a pid."""


def _tools(interpreter: Interpreter, names: Sequence[str]) -> dict[str, tuple[_Start, str] | None]:
    """Return what is measured, each with the words that say that it is ready; None: nothing."""

    def gilscope(pid: int) -> list[str]:
        return gilscope_command("--pid", str(pid), mode="contention")

    tools: dict[str, tuple[_Start, str] | None] = {"again": None, "gilscope": (gilscope, "Serving")}
    if names:

        def plain(pid: int) -> list[str]:
            return [*three_probes_command(pid, interpreter.elf), *names]

        tools["plain"] = plain, _PLAIN
    return tools


def _ratios(
    interpreter: Interpreter, names: Sequence[str], rounds: int, environment: Mapping[str, str]
) -> dict[str, list[float]]:
    """Return CPU time by that of the untraced runs around it, by work and tool."""
    found: dict[str, list[float]] = {}
    tools = _tools(interpreter, names)
    for _ in range(rounds):
        for work, units in _UNITS.items():
            with target_started(interpreter, _WORK, work, units) as target:
                before_s = target.piece()
                for name, tool in tools.items():
                    traced_s = _traced(target, tool, environment)
                    after_s = target.piece()
                    if traced_s is not None:
                        ratio = 2 * traced_s / (before_s + after_s)
                        found.setdefault(f"{work} {name}", []).append(ratio)
                    before_s = after_s
    return found


def _traced(
    target: Target, tool: tuple[_Start, str] | None, environment: Mapping[str, str]
) -> float | None:
    """Return the CPU time of a piece while *tool* traces; None: it has seen nothing."""
    if tool is None:
        return target.piece()
    start, marker = tool
    with tool_started(start(target.process.pid), marker, environment) as running:
        spent_s = target.piece()
    has_seen = marker != _PLAIN or takes_printed(running.output)
    return spent_s if has_seen else None


def main() -> int:
    """Measure, write the page, print it, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    options = parser.parse_args()
    # Tools are ended by SIGINT; what a script has started in its background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rows, interpreters, stolen = [], [], StolenTime()
    with tempfile.TemporaryDirectory() as cache:
        environment = tool_environment(cache)
        for name, functions in _RUNTIMES.items():
            try:
                interpreter = find_interpreter(name)
                found = _ratios(interpreter, functions, options.rounds, environment)
            except (Unavailable, ToolFailed) as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            interpreters.append(interpreter)
            print(f"{name}: {found}", file=sys.stderr)
            rows.append([name, *(ranged(found.get(column, ()), 3) for column in _COLUMNS)])
    facts = _facts(interpreters, options.rounds, stolen.share())
    page = _TEXT.format(facts=key_table(facts), table=table(["", *_COLUMNS.values()], rows))
    _PAGE.write_text(page)
    print(page)
    return 0


def _facts(
    interpreters: list[Interpreter], rounds: int, stolen: float
) -> Iterator[tuple[str, str]]:
    machine = read_machine(interpreters)
    yield "CPU", f"{machine.cpu}, {machine.cpus} usable"
    yield "kernel", machine.kernel
    yield from (each for each in machine.versions if each[0] not in ("bpftrace", "py-spy"))
    yield "date", f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M UTC}"
    yield "rounds", str(rounds)
    yield "stolen by the hypervisor", f"{100 * stolen:.1f} %"


_COLUMNS = {
    "alone again": "alone, nothing (noise)",
    "alone gilscope": "alone, gilscope",
    "alone plain": "alone, BCC, three probes",
    "fight again": "fight, nothing (noise)",
    "fight gilscope": "fight, gilscope",
    "fight plain": "fight, BCC, three probes",
}
_TEXT = """\
# What tracing costs other Pythons

This page is made by `make bench-runtimes` and holds for the machine and the versions below; [what \
tracing costs](overhead.md) is about CPython 3.12.

{facts}
CPU time of the traced process for the same work, divided by that of the same process untraced \
directly before and after: the median over the rounds, and the range.
In *alone* one thread computes and writes to `/dev/null` 100,000 times, so that it releases and \
acquires the GIL each time while nobody waits for it; in *fight* two threads compute.

{table}
gilscope is `serve --mode contention`, with stacks.
Beside it stand three probes by name, the plainest BCC program that times the GIL: an entry and a \
return probe on the function that acquires it, and a probe on the one that releases it.
They see every acquire, and need the names: PyPy's functions have none in a file without symbols, \
and no such program can be written for it.
In CPython 2.7 these functions are those of all locks; Debian's build of it does not go by the \
exported names within itself, so that the program sees nothing.
"""


if __name__ == "__main__":
    sys.exit(main())
