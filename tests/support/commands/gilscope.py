"""Runs gilscope's command line as users do: in a process of its own, seen through its outputs."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from support.paths import AGENT

__all__ = ["Gilscope", "Outcome", "eventually", "gilscope", "gilscope_started", "line_started"]

_CACHE = Path(tempfile.gettempdir()) / f"gilscope-tests-cache-{os.getuid()}"
_PATIENCE_S = 60.0
_LOOK_S = 0.005

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command that has ended leaves behind."""

    exit_code: int
    """Negative where a signal ended it."""
    output: str
    """Of standard output."""
    messages: str
    """Of standard error."""


@dataclass(slots=True)
class Gilscope:
    """A command that runs, or has ended."""

    process: subprocess.Popen[str]
    _output: IO[str] = field(repr=False)
    _messages: IO[str] = field(repr=False)

    @property
    def pid(self) -> int:
        """The process id of gilscope itself."""
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has written to standard output so far."""
        return Path(self._output.name).read_text()

    @property
    def messages(self) -> str:
        """What it has written to standard error so far."""
        return Path(self._messages.name).read_text()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to gilscope alone, not to a command that it has started."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Do what Ctrl-C in a terminal does: interrupt gilscope and the command it has started."""
        os.killpg(self.pid, signal.SIGINT)

    def says(self, words: str) -> str:
        """Wait for a line of standard error that holds *words*, and return it."""

        def line() -> str:
            assert self.process.poll() is None or words in self.messages, self.messages
            complete = self.messages.rpartition("\n")[0]
            return next((line for line in complete.splitlines() if words in line), "")

        return eventually(line)

    def outcome(self) -> Outcome:
        """Wait for its end; standard input ends now."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(_PATIENCE_S)
        return Outcome(code, self.output, self.messages)


def eventually(look: Callable[[], _T], *, within_s: float = _PATIENCE_S) -> _T:
    """Return what *look* returns as soon as that is true; fails after *within_s*."""
    deadline_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"not within {within_s} s, but {found!r}"
        time.sleep(_LOOK_S)
    return found


def command_line(*arguments: str, wrapper: Sequence[str] = ()) -> list[str]:
    """Return what starts gilscope with *arguments*, behind the words of *wrapper*."""
    return [*wrapper, sys.executable, "-m", "gilscope", *arguments]


def environment(**extra: str) -> dict[str, str]:
    """Return the environment of the command: this checkout's code, a cache of the tests' own."""
    path = os.pathsep.join(filter(None, (str(AGENT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(_CACHE), **extra}


@contextmanager
def gilscope_started(
    *arguments: str,
    wrapper: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    stdout: IO[bytes] | None = None,
) -> Iterator[Gilscope]:
    """Start gilscope in a process group of its own; it has ended when the block has.

    *wrapper* are words in front of its command line, *extra* is added to its environment; with
    *stdout* nothing is known of its output.
    """
    line = command_line(*arguments, wrapper=wrapper)
    with line_started(line, environment(**(extra or {})), stdout) as command:
        yield command


@contextmanager
def line_started(
    line: Sequence[str],
    environment: Mapping[str, str] | None = None,
    stdout: IO[bytes] | None = None,
) -> Iterator[Gilscope]:
    """Start gilscope by a whole command *line*, as `gilscope_started` does."""
    with (
        tempfile.NamedTemporaryFile("w") as output,
        tempfile.NamedTemporaryFile("w") as messages,
        subprocess.Popen(
            list(line),
            stdin=subprocess.PIPE,
            stdout=stdout or output,
            stderr=messages,
            env=environment,
            text=True,
            process_group=0,
        ) as process,
    ):
        try:
            yield Gilscope(process, output, messages)
        finally:
            if process.poll() is None:
                process.kill()


def gilscope(
    *arguments: str,
    wrapper: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    typed: str = "",
) -> Outcome:
    """Run gilscope to its end, with *typed* on its standard input."""
    with gilscope_started(*arguments, wrapper=wrapper, extra=extra) as command:
        assert command.process.stdin is not None
        command.process.stdin.write(typed)
        return command.outcome()
