"""Measures what tracing locks costs, and writes docs/overhead-locks.md.

Free-threaded CPythons, and one with a GIL: while nobody waits for a lock, while two threads want
the same one, and while the world is stopped all the time. Traced and untraced runs take turns, and
beside gilscope stands the same in bpftrace, and what samples stacks.
"""

import argparse
import datetime as dt
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.conditions import gilscope_command
from bench.machine import StolenTime, read_machine
from bench.markdown import key_table, ranged, table
from bench.peers import py_spy
from bench.pieces import Target, target_started
from bench.tool import ToolFailed, tool_environment, tool_started

from support.interpreters.known import Interpreter, Unavailable, find_interpreter

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_WORK = _ROOT / "tests" / "workloads" / "bench_locks.py"
_PAGE = _ROOT / "docs" / "overhead-locks.md"
_INTERPRETERS = ("free-threaded-3.14", "free-threaded-3.15", "debian-3.14")
_UNITS = {"alone": 300_000, "one_dict": 1_000_000, "one_lock": 60_000, "collections": 80_000}
_SECONDS = {"alone": 2.0, "one_dict": 5.0, "one_lock": 5.0, "collections": 3.0}
"""Of a run: who is faster where two fight changes all the time."""
_SETTLING_S = 3.0
"""That the target works traced before a run counts: auto mode learns what a wait costs there."""
_ROUNDS = 3

_BPFTRACE_PROGRAM = """\
uprobe:{file}:_PyMutex_LockTimed {{ @wanted[tid] = nsecs; }}
uretprobe:{file}:_PyMutex_LockTimed /@wanted[tid]/ {{
    @waits = count(); @wait_ns[tid] = sum(nsecs - @wanted[tid]); delete(@wanted[tid]);
}}
uprobe:{file}:_PySemaphore_Wait {{ @asleep[tid] = nsecs; }}
uretprobe:{file}:_PySemaphore_Wait /@asleep[tid]/ {{
    @slept_ns[tid] = sum(nsecs - @asleep[tid]); delete(@asleep[tid]);
}}
uprobe:{file}:_PySemaphore_Wakeup {{ @wakes = count(); }}
interval:ms:100 /@ready == 0/ {{ @ready = 1; printf("Tracing\\n"); }}
"""
"""Who wants a mutex that is taken, who sleeps, and who wakes others: all of them are exported."""


@dataclass(frozen=True, slots=True)
class _Tool:
    """One row of the table."""

    title: str
    command: Callable[[int, Interpreter], list[str]] | None = None
    """For the process; None: nothing traces."""
    marker: str = ""
    """What it prints when it has begun."""
    says_when: bool = True
    """Whether it does; otherwise it is started a moment before the work begins."""
    only: str = ""
    """The interpreter that it is for; empty: all."""


@dataclass(slots=True)
class _Found:
    """What was measured with one tool in one interpreter."""

    ratios: dict[str, list[float]] = field(default_factory=dict)
    """CPU time by that of the untraced runs around it, by work."""
    attach_s: list[float] = field(default_factory=list)
    failure: str = ""


def _gilscope(mode: str) -> Callable[[int, Interpreter], list[str]]:
    return lambda pid, _: gilscope_command("--pid", str(pid), "--locks", mode=mode)


def _bpftrace(pid: int, interpreter: Interpreter) -> list[str]:
    return ["bpftrace", "-p", str(pid), "-e", _BPFTRACE_PROGRAM.format(file=interpreter.elf)]


def _py_spy(pid: int, _: Interpreter) -> list[str]:
    options = ["--rate", "100", "--format", "raw", "--output", "/dev/null"]
    return [str(py_spy()), "record", *options, "--pid", str(pid)]


def _sampling(pid: int, interpreter: Interpreter) -> list[str]:
    """Python's own profiler samples its own version alone, which is new in 3.15."""
    options = ["attach", "--duration", "600", "--all-threads", "--collapsed", "-o", "/dev/null"]
    command = interpreter.command("-m", "profiling.sampling", *options, str(pid))
    # The build's own settings are not among what is unpacked; those of one with a GIL will do.
    settings = "_PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__linux_x86_64-linux-gnu"
    environment = (f"{name}={value}" for name, value in interpreter.env.items())
    begin = ["sh", "-c", 'echo Sampling; exec "$@"', "sh"]
    return [*begin, "env", settings, *environment, *command]


_TOOLS = {
    "again": _Tool("nothing (noise)"),
    "auto": _Tool("gilscope, auto", _gilscope("auto"), "Serving "),
    "full": _Tool("gilscope, all the time", _gilscope("full"), "Serving "),
    "bpftrace": _Tool("bpftrace", _bpftrace, "Tracing"),
    "py-spy": _Tool("py-spy, 100 Hz", _py_spy, "Sampling process"),
    "sampling": _Tool(
        "profiling.sampling, 1000 Hz",
        _sampling,
        "Sampling",
        says_when=False,
        only="free-threaded-3.15",
    ),
}


def _measured(
    interpreter: Interpreter, rounds: int, environment: Mapping[str, str]
) -> dict[str, _Found]:
    found = {key: _Found() for key in _TOOLS}
    for _ in range(rounds):
        for work in _works(interpreter):
            seconds = _SECONDS[work]
            with target_started(interpreter, _WORK, work, _UNITS[work], seconds) as target:
                before_s = target.piece()
                for key, tool in _TOOLS.items():
                    if found[key].failure or tool.only not in {"", interpreter.name}:
                        continue
                    traced_s = _traced(target, tool, interpreter, environment, found[key])
                    after_s = target.piece()
                    if traced_s is not None:
                        ratio = 2 * traced_s / (before_s + after_s)
                        found[key].ratios.setdefault(work, []).append(ratio)
                    before_s = after_s
    return found


def _works(interpreter: Interpreter) -> Sequence[str]:
    """Return what is worth measuring: where there is a GIL, objects have no locks."""
    is_free = interpreter.name.startswith("free-threaded")
    return tuple(_UNITS) if is_free else ("alone", "one_lock")


def _traced(
    target: Target,
    tool: _Tool,
    interpreter: Interpreter,
    environment: Mapping[str, str],
    found: _Found,
) -> float | None:
    """Return the CPU time of a piece while *tool* traces; None: it does not."""
    if tool.command is None:
        return target.piece()
    try:
        command = tool.command(target.process.pid, interpreter)
        with tool_started(command, tool.marker, environment) as running:
            if tool.says_when:
                found.attach_s.append(running.attach_ns / 1e9)
                target.piece(_SETTLING_S)
            return target.piece()
    except (ToolFailed, OSError) as error:
        found.failure = str(error)
        return None


def main() -> int:
    """Measure, write the page, print it, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    options = parser.parse_args()
    # Tools are ended by SIGINT; what a script has started in its background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tables, failures, interpreters, stolen = [], [], [], StolenTime()
    with tempfile.TemporaryDirectory() as cache:
        # Of a tool that fails the last words are told, and a backtrace is none.
        environment = {**tool_environment(cache), "RUST_BACKTRACE": "0"}
        for name in _INTERPRETERS:
            try:
                interpreter = find_interpreter(name)
            except Unavailable as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            interpreters.append(interpreter)
            found = _measured(interpreter, options.rounds, environment)
            tables.append(_table(interpreter, found))
            failures += [
                f"- {_TOOLS[key].title}, {name}: {each.failure}\n"
                for key, each in found.items()
                if each.failure
            ]
    facts = _facts(interpreters, options.rounds, stolen.share())
    page = _TEXT.format(
        facts=key_table(facts),
        tables="\n".join(tables),
        settling=_SETTLING_S,
        failures="".join(failures),
    )
    _PAGE.write_text(page)
    print(page)
    return 0


def _table(interpreter: Interpreter, found: Mapping[str, _Found]) -> str:
    works = _works(interpreter)
    rows = (
        [
            _TOOLS[key].title,
            *(ranged(each.ratios.get(work, ()), 3) for work in works),
            ranged(each.attach_s, 2),
        ]
        for key, each in found.items()
        if each.ratios
    )
    heads = ["", *(_TITLES[work] for work in works), "attach, s"]
    return f"## {interpreter.name}\n\n{table(heads, rows)}"


def _facts(
    interpreters: list[Interpreter], rounds: int, stolen: float
) -> Iterator[tuple[str, str]]:
    machine = read_machine(interpreters)
    yield "CPU", f"{machine.cpu}, {machine.cpus} usable"
    yield "kernel", machine.kernel
    yield from machine.versions
    yield "date", f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M UTC}"
    yield "rounds", str(rounds)
    yield "stolen by the hypervisor", f"{100 * stolen:.1f} %"


_TITLES = {
    "alone": "nobody waits",
    "one_dict": "one dict",
    "one_lock": "one Lock",
    "collections": "collections",
}
_TEXT = """\
# What tracing locks costs

This page is made by `make bench-locks` and holds for the machine and the versions below; [locks]\
(locks.md) says what is traced, and [what tracing costs](overhead.md) is about the GIL.

{facts}
CPU time of the traced process for the same work, divided by that of the same process untraced \
directly before and after: the median over the rounds, and the range.
Behind it stands the time from the start of the tool to its word that it has begun.

- *Nobody waits*: one thread uses a Lock, a list and a dict of its own.
- *One dict*: two threads store into one dict, and do nothing else.
- *One Lock*: two threads take a `threading.Lock` and keep it for half of their time.
- *Collections*: one thread computes, while another one collects garbage some hundred times a \
second.

{tables}
gilscope is `serve --locks`, with stacks and a budget of 1 %, and with `--mode full`, which traces \
locks all the time; of a build with a GIL it traces that as well.
bpftrace has the same places, as far as they have names: entry and return of the function in which \
a thread wants a mutex that is taken, and of the one in which it sleeps, and the one that wakes \
others; without stacks, types, stops of the world, or what else a thread sleeps for.
What samples stacks, py-spy and Python's own `profiling.sampling`, which is for its own version \
alone and does not say when it has begun, does not tell for which lock a thread waits; austin 4 \
does not run with this C library.
A run lasts two to five seconds, and begins {settling:.0f} seconds after a tool that says when it \
has begun: before that auto mode does not know yet what a wait costs there, and traces all the time.
In *one dict* the CPU time of the same work differs by a factor of two from one second to the \
next, traced or not.

{failures}"""


if __name__ == "__main__":
    sys.exit(main())
