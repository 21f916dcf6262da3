"""A program that does a piece of work whenever it is told to, and says what CPU time that took."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.interpreter import Interpreter

__all__ = ["Target", "target_started"]


@dataclass(slots=True)
class Target:
    """One program that works when it is told to."""

    process: "subprocess.Popen[str]"
    seconds: float
    """How long it works at a time, at least."""

    def piece(self, seconds: float | None = None) -> float:
        """Return the CPU time of as many pieces of work as last so long, by their number.

        They last *seconds*, by default as long as usual.
        """
        lasts_s = self.seconds if seconds is None else seconds
        spent_s, pieces, began_s = 0.0, 0, time.monotonic()
        while not pieces or time.monotonic() < began_s + lasts_s:
            spent_s += float(self._ask()["cpu_s"])
            pieces += 1
        return spent_s / pieces

    def _ask(self) -> dict[str, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> dict[str, float]:
        """Return what it says next."""
        assert self.process.stdout is not None
        heard: dict[str, float] = json.loads(self.process.stdout.readline())
        return heard


@contextmanager
def target_started(
    interpreter: Interpreter, script: Path, work: str, units: int, seconds: float = 1.0
) -> Iterator[Target]:
    """Run *script*, which does *units* of *work* at a time, until the block ends.

    That is done for so many *seconds*, at least, whenever it is asked.
    """
    process = subprocess.Popen(
        interpreter.command(str(script), work, str(units)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=interpreter.environment(),
    )
    try:
        target = Target(process, seconds)
        target.hear()
        yield target
    finally:
        process.kill()
        process.wait()
