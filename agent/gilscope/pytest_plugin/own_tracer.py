"""The child that traces this process from outside, and what is asked of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from gilscope.pytest_plugin.figures import Sums

__all__ = ["ASKING", "CannotTrace", "OwnTracer"]

_PATIENCE_S = 10.0
"""Timeout for the end of the child."""
ASKING = Path(__file__).name
"""In this file stand threads that wait for the GIL because they have asked."""


class CannotTrace(Exception):
    """This process is not traced, or not any more; in words, with what to do about it."""


class OwnTracer:
    """A child that traces this process from the moment that this is made until it is closed."""

    def __init__(self) -> None:
        """Wait until the probes are in place; raises CannotTrace."""
        # In a group of its own: Ctrl-C is for the tests, whose end is the end of the child.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "gilscope.pytest_plugin.child", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            env=_with_own_path(),
        )
        self._asked = 0
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def sums(self) -> Sums:
        """Return what has been counted up to now; raises CannotTrace."""
        stdin = self._child.stdin
        assert stdin is not None  # noqa: S101 - it is a pipe
        self._asked += 1
        try:
            os.write(stdin.fileno(), b"%d\n" % self._asked)
        except BrokenPipeError as error:
            raise CannotTrace(f"gilscope has ended with code {self._child.wait()}") from error
        return self._answer()

    def close(self) -> None:
        """Have the probes taken out."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _answer(self) -> Sums:
        stdout = self._child.stdout
        assert stdout is not None  # noqa: S101 - it is a pipe
        # Whoever was interrupted, by a time limit of a test for example, has not read its answer.
        while (answer := self._line(stdout.readline()))["number"] != self._asked:
            pass
        return answer

    def _line(self, line: bytes) -> Sums:
        if not line:
            raise CannotTrace(f"gilscope has ended with code {self._child.wait()}")
        try:
            answer: Sums = json.loads(line)
        except ValueError as error:
            raise CannotTrace(f"gilscope's answer cannot be read: {line[:100]!a}") from error
        if "error" in answer:
            raise CannotTrace(f"{answer['error']}\n{answer['remedy']}".rstrip())
        return answer


def _with_own_path() -> dict[str, str]:
    """Return the environment in which the child finds the package that this is of."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
