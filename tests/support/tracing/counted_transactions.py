"""Records a program with transactions for some rounds."""

import json
import signal
from collections.abc import Sequence
from typing import Any

from support.commands.gilscope import gilscope_started
from support.tracing.transactions import StmProgram

__all__ = ["TRACING", "recorded"]

TRACING = "Tracing the transactions of"
"""What is said when all probes are there."""


def recorded(
    program: StmProgram, *, rounds: int = 1, options: Sequence[str] = ("--mode", "full")
) -> tuple[dict[str, Any], str]:
    """Return the report on *rounds* of the program, and what it says after the last one.

    By default all the time is seen, so that counts are exact.
    """
    line = ("record", "-p", str(program.pid), "--format", "json", *options)
    with gilscope_started(*line) as command:
        command.says(TRACING)
        answers = [program.tell() for _ in range(rounds)]
        command.send(signal.SIGINT)
        outcome = command.outcome()

    assert 0 == outcome.exit_code, outcome.messages
    return dict(json.loads(outcome.output)), answers[-1]
