"""Measures what a region of gilscope-client costs the program that has it.

On some interpreters: without an agent, with one, and with one in a coroutine's block.
Prints nanoseconds a region, the least of some rounds, and fails where one with an agent takes more
than a microsecond.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from accuracy.truth import Workload, spoken_to
from support.commands.serve import serving
from support.interpreters.known import Interpreter, find_interpreter
from support.paths import AGENT

__all__ = ["main"]

_BAR_NS = 1000
_LINES = """
import asyncio, json, os, sys, time
from gilscope_client import connect, region

COUNT, ROUNDS = 500, 500

def blocks():
    began_ns = time.perf_counter_ns()
    for _ in range(COUNT):
        with region("r"):
            pass
    return (time.perf_counter_ns() - began_ns) / COUNT

async def in_coroutine():
    return blocks()

def empty():
    began_ns = time.perf_counter_ns()
    for _ in range(COUNT):
        pass
    return (time.perf_counter_ns() - began_ns) / COUNT

print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
for line in sys.stdin:
    connected = connect(0 if line == "alone\\n" else 20)
    least = {
        "loop": min(empty() for _ in range(ROUNDS)),
        "block": min(blocks() for _ in range(ROUNDS)),
        "coroutine": min(asyncio.run(in_coroutine()) for _ in range(ROUNDS)),
    }
    print(json.dumps({"connected": connected, **least}), flush=True)
"""


def main() -> int:
    """Measure, print, and return 1 where the bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="INTERPRETER", help="of the tests")
    names: Sequence[str] = options.parse_args().names
    is_dear = False
    print("Nanoseconds a region (bar: a block with an agent, 1000)")
    print(f"  {'':24} {'alone':>8} {'block':>8} {'in a coroutine':>15}")
    for interpreter in _chosen(names):
        with tempfile.TemporaryDirectory() as folder:
            alone, block, coroutine = _measured(interpreter, Path(folder) / "regions.sock")
        is_dear |= block > _BAR_NS
        print(f"  {interpreter.name:24} {alone:8.0f} {block:8.0f} {coroutine:15.0f}")
    return int(is_dear)


def _chosen(names: Sequence[str]) -> list[Interpreter]:
    return [find_interpreter(name) for name in names or ("debian-3.11", "pyenv-3.8", "debian-3.14")]


def _measured(interpreter: Interpreter, path: Path) -> tuple[float, float, float]:
    settings = {**interpreter.env, "PYTHONPATH": f"{AGENT}/client", "GILSCOPE_REGIONS": str(path)}
    words = [f"{name}={value}" for name, value in settings.items()]
    with spoken_to(["env", *words, *interpreter.argv, "-c", _LINES]) as program:
        alone = _told(program, "alone")
        with serving("--regions", str(path), "-p", str(program.pid)):
            traced = _told(program, "traced")
    if not traced["connected"]:
        raise subprocess.SubprocessError(f"{interpreter.name} was told nothing by the agent")
    return (
        alone["block"] - alone["loop"],
        traced["block"] - traced["loop"],
        traced["coroutine"] - traced["loop"],
    )


def _told(program: Workload, command: str) -> dict[str, float]:
    program.command(command)
    return dict(program.answer())


if __name__ == "__main__":
    sys.exit(main())
