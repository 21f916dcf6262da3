"""Programs that do with Python what few programs do."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from accuracy.truth import Workload, spoken_to
from faults.bench import TRACING, Bench, wait_s_of
from faults.native import compiled, found, python_flags
from faults.registry import NotHere, Verdict, fault
from faults.targets import SYSTEM_PYTHON, Target
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process

_WAITS = "gilscope_gil_thread_waits_total"
_DEEP = """
import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(1 << 29)
def down(depth, number):
    if depth:
        return down(depth - 1, number)
    work(counts, number)
for number in (2, 3):
    threading.Thread(target=down, args=({depth}, number), daemon=True).start()
"""


def _steps(bench: Bench, code: str, *python: str, waiting: int = 3) -> Target:
    """Have a target run *code*, which adds two threads, and trace it in every way."""
    target = bench.target(*python)
    target.do(code)
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target, waiting=waiting)
    bench.reports_rightly(target, "--mode", "full", waiting=waiting)
    return target


@fault("deep_recursion", "contending threads 100,000 frames deep: reported in bounded time")
def _deep_recursion(bench: Bench) -> None:
    _steps(bench, _DEEP.format(depth=2_000 if bench.is_half else 100_000))


_COROUTINES = """
import asyncio, threading
def numbers():
    number = 0
    while True:
        number += 1
        yield number
async def leaf(value):
    return value
async def stream():
    while True:
        yield await leaf(1)
async def busy(number):
    generator = numbers()
    async for value in stream():
        next(generator)
        counts[number] += 1
for number in (2, 3):
    threading.Thread(target=lambda number=number: asyncio.run(busy(number)), daemon=True).start()
"""


@fault("coroutines", "generators and coroutines switched all the time in contending threads")
def _coroutines(bench: Bench) -> None:
    _steps(bench, _COROUTINES)


_GREENLETS = """
import threading, greenlet
def swap(number):
    main = greenlet.getcurrent()
    def other():
        while True:
            sum(range(100))
            main.switch()
    child = greenlet.greenlet(other)
    while True:
        child.switch()
        counts[number] += 1
for number in (2, 3):
    threading.Thread(target=swap, args=(number,), daemon=True).start()
"""


@fault(
    "greenlets", "greenlets that swap C stacks while threads contend: target lives, sane figures"
)
def _greenlets(bench: Bench) -> None:
    line = [SYSTEM_PYTHON, "-c", "import greenlet"]
    if subprocess.run(line, capture_output=True, check=False).returncode:
        raise NotHere("this machine's Python has no greenlet (apt install python3-greenlet)")
    _steps(bench, _GREENLETS)


_JUMPING = """
import ctypes, threading
library = ctypes.PyDLL({path!r})
def jump(number):
    while True:
        library.jump(50)
        counts[number] += 1
for number in (2, 3):
    threading.Thread(target=jump, args=(number,), daemon=True).start()
"""


@fault("longjmp", "C that drops the GIL at different depths of the stack and leaves by longjmp")
def _longjmp(bench: Bench) -> None:
    interpreter = found("pyenv-3.12")
    flags = [*python_flags(interpreter, linked=False), "-shared", "-fPIC"]
    library = compiled("jumps.c", bench.folder / "jumps.so", *flags)
    target = bench.target(*interpreter.command())
    target.do(_JUMPING.format(path=str(library)))
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    report = bench.report(target.pid, "--mode", "full")
    bench.expect(Verdict.WRONG_NUMBER, report["process"]["valid"], "the report is not valid")
    most_s = len(report["threads"]) * report["duration_s"] * 1.05
    waits_s = wait_s_of(report)
    bench.expect(Verdict.WRONG_NUMBER, 0 < waits_s <= most_s, f"{waits_s} s of waits")


_SUBINTERPRETERS = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
for _ in range({times}):
    number = interpreters.create()
    interpreters.run_string(number, "sum(range(1000))")
    interpreters.destroy(number)
"""


def _subinterpreters(name: str) -> None:
    @fault(
        f"subinterpreters_{name[-4:].replace('.', '')}",
        f"{name}: interpreters with GILs of their own made and ended 1,000 times while traced",
    )
    def check(bench: Bench) -> None:
        target = bench.target(*found(name).command())
        service = bench.serve("-p", str(target.pid))
        bench.sees(service, target)
        with bench.steady(service):
            for _ in bench.times(1, 10):
                target.do(_SUBINTERPRETERS.format(times=20 if bench.is_half else 100))
                bench.lives(service)
        bench.counts_rightly(service, target)


for _name in ("pyenv-3.12", "pyenv-3.13"):
    _subinterpreters(_name)

_MANY_GILS = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
kept = [interpreters.create() for _ in range({times})]
"""


@fault(
    "many_gils", "200 interpreters with GILs of their own alive at once (3.12): figures are right"
)
def _many_gils(bench: Bench) -> None:
    target = bench.target(*found("pyenv-3.12").command())
    target.do(_MANY_GILS.format(times=40 if bench.is_half else 200))
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target)
    bench.reports_rightly(target)


@contextmanager
def _program(bench: Bench, source: str, *words: str) -> Iterator[Workload]:
    interpreter = found("pyenv-3.12")
    is_linked = source == "embed.c"
    flags = python_flags(interpreter, linked=is_linked) if is_linked else ["-ldl"]
    program = compiled(source, bench.folder / source[:-2], *flags)
    variables = [f"{name}={value}" for name, value in interpreter.env.items()]
    home = str(interpreter.elf.parent.parent)
    line = ["env", f"PYTHONHOME={home}", *variables, str(program), *words]
    with spoken_to(line) as workload:
        yield workload


@fault("embed_loop", "a program that begins and ends Python 40 times while it is traced")
def _embed_loop(bench: Bench) -> None:
    for arguments in (("record",), ("record", "--mode", "full")):
        with _program(bench, "embed.c", "10" if bench.is_half else "40") as workload:
            command = bench.agent(*arguments, "-p", str(workload.pid), "--format", "json")
            command.says(TRACING)
            rounds = workload.run()["result"]
            bench.equal(Verdict.TARGET_HARMED, 10 if bench.is_half else 40, rounds, "rounds")
            command.interrupt()
            outcome = command.outcome()
            bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, outcome.messages[-200:])
            bench.expect(Verdict.WRONG_NUMBER, json.loads(outcome.output), "no report")
            bench.equal(Verdict.TARGET_HARMED, 0, workload.finish(), "exit code of the target")


@fault("dlopen_late", "a C program that loads libpython long after serve has seen it: traced")
def _dlopen_late(bench: Bench) -> None:
    library = found("pyenv-3.12").elf
    service = bench.serve("--match", str(bench.folder))
    with _program(bench, "late.c", str(library)) as workload:
        bench.lives(service)
        workload.command("l")
        workload.answer()
        workload.command("R")
        workload.answer()
        eventually(lambda: service.scrape().total(_WAITS, pid=str(workload.pid)) > 5)


@fault("dlclose", "libpython is unloaded while it is traced, three times: the program lives")
def _dlclose(bench: Bench) -> None:
    library = found("pyenv-3.12").elf
    service = bench.serve("--match", str(bench.folder))
    with _program(bench, "late.c", str(library)) as workload:
        for _ in bench.times(1, 3):
            for command in ("l", "r"):
                workload.command(command)
                workload.answer()
            bench.lives(service)
            workload.command("u")
            workload.answer()
        bench.lives(service)
        bench.equal(Verdict.TARGET_HARMED, 0, workload.finish(), "exit code of the target")


_FORKING = """
import os
result = 0
for _ in range({times}):
    child = os.fork()
    if not child:
        import threading
        def crunch():
            for _ in range(50):
                sum(range(2000))
        threads = [threading.Thread(target=crunch) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        os._exit(7)
    result += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@fault("fork_while_waiting", "300 forks in the midst of waits, children contend: all of them run")
def _fork_while_waiting(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    times = 10 if bench.is_half else 60
    with bench.steady(service):
        for _ in bench.times(1, 5):
            ran = target.do(_FORKING.format(times=times))
            bench.equal(Verdict.TARGET_HARMED, times, ran, "children that ended well")
            bench.lives(service)
    bench.counts_rightly(service, target)


@fault("abrupt_ends", "os._exit, abort, SIGKILL and the end of Python while threads wait: a report")
def _abrupt_ends(bench: Bench) -> None:
    # Each way to end, and the exit code of the target.
    ways = {
        "import os; os._exit(3)": 3,
        "import os; os.abort()": -signal.SIGABRT,
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
        "import sys; sys.exit(4)": 4,
    }
    for code, expected in ways.items():
        target = bench.target(may_end=True)
        command = bench.recording(target, "--format", "json")
        target.advances(300)
        target.workload.command(json.dumps(code))
        outcome = command.outcome()
        bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, f"{code}: {outcome.messages[-200:]}")
        waits_s = wait_s_of(only_process(outcome.output))
        bench.expect(Verdict.WRONG_NUMBER, waits_s > 0, f"{code}: no waits")
        bench.equal(Verdict.TARGET_HARMED, expected, target.workload.finish(), code)
