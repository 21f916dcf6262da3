"""A process that keeps its GIL in C for as long as a test wants it to."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.paths import WORKLOADS

__all__ = ["SCRIPT", "Holder", "holder_started"]

SCRIPT = WORKLOADS / "held_in_c.py"


class Holder:
    """A process that holds the GIL until it is told to go on; another thread waits for it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid

    def holds(self) -> None:
        """Return when it is about to hold the GIL."""
        assert self.process.stdout is not None
        assert b"holding\n" == self.process.stdout.readline()

    def go_on(self) -> None:
        """Let it go on, and return when it has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b".")
        self.process.stdin.flush()
        assert b"released\n" == self.process.stdout.readline()


@contextmanager
def holder_started(
    script: Path = SCRIPT, python: Sequence[str] = ("/usr/bin/python3",)
) -> Iterator[Holder]:
    """Run *script* with *python*; it is killed in the end."""
    with subprocess.Popen(
        [*python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Holder(process)
        finally:
            process.kill()
