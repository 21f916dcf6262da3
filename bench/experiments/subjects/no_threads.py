"""What gilscope says of a process with one thread: whether there is a GIL."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from bench.experiments.cells import Cell, CellFailed, Experiment, Figures, Results
from bench.experiments.processes import OWN, program, set_of
from bench.experiments.runtimes import FREE_THREADED, MAIN, RUNTIMES, Runtime, find
from bench.markdown import NONE, table

__all__ = ["EXPERIMENT"]

_KEYS = (MAIN.key, "2.7", "pypy3")
_CHOSEN = [*(each for each in RUNTIMES if each.key in _KEYS), FREE_THREADED]
_NO_GIL = 7
"""gilscope's exit code for a process that runs without one."""

_TEXT = """\
A reader of the source asks whether there is a GIL in a Python that was built without threads (S33).
Such builds are gone; what can be asked of today's is whether a process with a single thread has one.
`gilscope record -d 0.5` was asked about such a process on each of these.

"""
_ADDS = """
## What it means

- CPython 3 has a GIL with its first thread, and makes it before any other: it is there, nobody waits for it, and the report says that there is no contention.
- CPython 2.7 makes its lock when a program first uses threads; until then there is none.
- A free-threaded build has none, and is refused with the reason, never shown as one without contention.
"""


def _measure(runtime: Runtime, cpus: str) -> Figures:
    command = [sys.executable, "-m", "gilscope", "record", "-d", "0.5", "--pid"]
    with program(find(runtime), "alone.py", cpus=set_of(cpus)) as running:
        done = subprocess.run(
            [*command, str(running.pid)],
            check=False,
            capture_output=True,
            text=True,
            env=OWN.environment(),
        )
        computed = running.ask("go")["tasks"]
    if computed != 20 or running.first["threads"] != 1:
        raise CellFailed("the process was not as it should be")
    if done.returncode != (_NO_GIL if runtime is FREE_THREADED else 0):
        raise CellFailed(f"gilscope ended with {done.returncode}: {done.stderr.strip()}")
    if done.returncode:
        answer = done.stderr.strip().splitlines()[0].replace(str(running.pid), "PID")
    else:
        # The verdict's first two lines: is there one, and did anybody wait?
        answer = " ".join(done.stdout.split("\n\n")[1].splitlines()[:2])
    return {"exit_code": done.returncode, "answer": answer}


def _cells(is_quick: bool) -> Sequence[Cell]:
    return [
        Cell(
            runtime.key,
            {"runtime": runtime.key},
            "one",
            2.0,
            partial(_measure, runtime, "one"),
            rounds=1,
            timed=False,
        )
        for runtime in ([MAIN, FREE_THREADED] if is_quick else _CHOSEN)
    ]


def _body(results: Results) -> str:
    rows = []
    for runtime in _CHOSEN:
        answer, code = NONE, NONE
        for outcome in results.measured(runtime=runtime.key):
            answer, code = outcome.figures["answer"], str(outcome.figures["exit_code"])
        rows.append((runtime.title, answer, code))
    return _TEXT + table(["one thread of", "gilscope says", "exit code"], rows) + _ADDS


def _pictures(_: Results) -> Mapping[str, str]:
    return {}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    answers = [each.figures["answer"] for each in results.measured(runtime=MAIN.key)]
    return {"S33": (f"CPython 3: {answers[0]}", "-")} if answers else {}


EXPERIMENT = Experiment(
    name="no_threads",
    title="Is there a GIL without threads?",
    sources=("S33",),
    source={"S33": "a question without an answer"},
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
