"""Measures what a region of gilscope-client costs the program that has it.

On each version: without an agent, with one, with one in a coroutine's block, and with one in full
mode, which tells holds too. Prints nanoseconds a region, the least of some rounds, as a table of
Markdown, and fails where one with an agent takes more than a microsecond.
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

Took = dict[str, float]
"""Nanoseconds that a region takes, by where it stands."""

_BAR_NS = 1000
_VERSIONS = (
    "pyenv-3.8-stripped",
    "debian-3.9",
    "pyenv-3.10",
    "debian-3.11",
    "pyenv-3.12",
    "debian-3.13",
    "debian-3.14",
    "debian-3.15",
)
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
    print("| CPython | no agent | an agent | in a coroutine | full mode |")
    print("| --- | --- | --- | --- | --- |")
    for interpreter in _chosen(names):
        with tempfile.TemporaryDirectory() as folder:
            alone, traced, full = _measured(interpreter, Path(folder) / "regions.sock")
        is_dear |= traced["block"] > _BAR_NS
        version = ".".join(map(str, interpreter.version[:2]))
        took_ns = (alone["block"], traced["block"], traced["coroutine"], full["block"])
        print(f"| {version} | {' | '.join(f'{ns:.0f} ns' for ns in took_ns)} |")
    return int(is_dear)


def _chosen(names: Sequence[str]) -> list[Interpreter]:
    return [find_interpreter(name) for name in names or _VERSIONS]


def _measured(interpreter: Interpreter, path: Path) -> tuple[Took, Took, Took]:
    """Return what a region takes without an agent, with one, and with one in full mode."""
    settings = {**interpreter.env, "PYTHONPATH": f"{AGENT}/client", "GILSCOPE_REGIONS": str(path)}
    words = [f"{name}={value}" for name, value in settings.items()]
    command = ["env", *words, *interpreter.argv, "-c", _LINES]
    with spoken_to(command) as program:
        alone = _told(program, "alone")
    traced, full = (_traced(command, path, mode) for mode in ("contention", "full"))
    return alone, traced, full


def _traced(command: Sequence[str], path: Path, mode: str) -> Took:
    with (
        spoken_to(command) as program,
        serving("--mode", mode, "--regions", str(path), "-p", str(program.pid)),
    ):
        return _told(program, "traced")


def _told(program: Workload, command: str) -> Took:
    program.command(command)
    answer = program.answer()
    if answer["connected"] != (command == "traced"):
        raise subprocess.SubprocessError(f"an agent tells the program: {answer['connected']}")
    return {name: answer[name] - answer["loop"] for name in ("block", "coroutine")}


if __name__ == "__main__":
    sys.exit(main())
