"""Starts the programs of experiments, on named CPUs, and reads their JSON lines."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.experiments.cells import CellFailed
from bench.experiments.gate import cpu_sets, pinned

from support.interpreters.interpreter import Interpreter, run
from support.paths import ROOT

__all__ = ["OWN", "PROGRAMS", "Program", "client_cpus", "compiled", "program", "set_of"]

PROGRAMS = Path(__file__).resolve().parent / "programs"
OWN = Interpreter(
    "own", sys.version_info[:3], (sys.executable,), Path(sys.executable), stripped=False
)
"""What runs this: clients and gilscope run on it too."""
_COMPILED = ROOT / ".cache" / "bench" / "programs"
_PATIENCE_S = 60.0


class Program:
    """A running program that has said its first line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self.first = self.next()

    def next(self) -> dict[str, Any]:
        """Return the next line that it says; raises CellFailed if it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait(_PATIENCE_S)
            raise CellFailed(f"a program ended with {code} where it should have answered")
        value: dict[str, Any] = json.loads(line)
        return value

    def ask(self, line: str = "") -> dict[str, Any]:
        """Send a line and return the answer; raises CellFailed."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self.next()


def set_of(name: str) -> tuple[int, ...]:
    """Return the CPUs of a named set."""
    return cpu_sets(os.sched_getaffinity(0))[name]


def client_cpus(name: str) -> tuple[int, ...]:
    """Return where the client of a server on that set runs: elsewhere where there are others.

    On a machine with two CPUs there are none, and the page says so.
    """
    usable, taken = os.sched_getaffinity(0), set_of(name)
    others = tuple(sorted(usable - set(taken)))
    return others if others and len(usable) > len(taken) + 1 else taken


@contextmanager
def program(
    interpreter: Interpreter, script: str, *arguments: str | float, cpus: Sequence[int]
) -> Iterator[Program]:
    """Run a script of the folder `programs`; it has ended when the block has."""
    words = map(str, arguments)
    command = pinned(interpreter.command(str(PROGRAMS / script), *words), cpus)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=interpreter.environment(PYTHONDONTWRITEBYTECODE="1"),
    )
    try:
        yield Program(process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def compiled(source: str, *flags: str, **settings: str) -> Interpreter:
    """Return what runs a program in C of the folder `programs`; raises Unavailable.

    It is compiled when the source has changed, and run with *settings* in its environment.
    """
    text = (PROGRAMS / source).read_bytes()
    key = hashlib.sha256(text + " ".join(flags).encode()).hexdigest()[:12]
    program = _COMPILED / f"{source}-{key}"
    if not program.exists():
        _COMPILED.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        run(["gcc", "-O1", "-pthread", *flags, "-o", str(made), str(PROGRAMS / source)])
        made.rename(program)
    return Interpreter(source, (0, 0, 0), (), program, stripped=False, env=settings)
