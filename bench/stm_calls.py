"""Measures what recording costs a program that makes small calls to outside all the time.

Each call leaves a transaction open and takes it up again, which in a PyPy-STM that logs is two
events: some million calls a second run into probes twice as often. Alone, within the overhead
budget, and with all of them seen, in turn.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.commands.gilscope import gilscope_started
from support.tracing.counted_transactions import TRACING
from support.tracing.stmgc import STMGC
from support.tracing.transactions import StmProgram, built, running

_CALLS = 1_000_000
_BUDGET = 0.01
_WAYS: dict[str, Sequence[str] | None] = {
    "alone": None,
    "within the budget": (),
    "--mode full": ("--mode", "full"),
}


def main() -> int:
    """Print the table; return 1 where the budget was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each way and round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rates: dict[str, list[float]] = {way: [] for way in _WAYS}
    with tempfile.TemporaryDirectory() as folder:
        program_file = built(Path(folder), "stmgc", STMGC["E16-pie"])
        for _ in range(arguments.rounds):
            for way, options in _WAYS.items():
                with running(program_file, "1", "1", "log") as program:
                    rates[way].append(_rate(program, options, arguments.seconds))
    alone = statistics.median(rates["alone"])
    print("| recorded | calls in a second of CPU time | CPU time by that alone |")
    print("|---|---|---|")
    for way, found in rates.items():
        rate = statistics.median(found)
        print(f"| {way} | {rate / 1e6:.2f} million | {alone / rate:.3f} |")
    return int(alone / statistics.median(rates["within the budget"]) > 1 + 2 * _BUDGET)


def _rate(program: StmProgram, options: Sequence[str] | None, seconds: float) -> float:
    """Return how many calls *program* makes in a second of CPU time.

    It is recorded with *options*, or not at all.
    """
    if options is None:
        return _calls_a_second(program, seconds)
    line = ("record", "-p", str(program.pid), "--format", "json", *options)
    with gilscope_started(*line) as command:
        command.says(TRACING)
        rate = _calls_a_second(program, seconds)
        command.send(signal.SIGINT)
        command.outcome()
    return rate


def _calls_a_second(program: StmProgram, seconds: float) -> float:
    calls, cpu_ns = 0, 0
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        cpu_ns += int(program.tell(f"calls {_CALLS}"))
        calls += _CALLS
    return calls * 1e9 / cpu_ns


if __name__ == "__main__":
    sys.exit(main())
