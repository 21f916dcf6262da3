"""Standard input, output and error of the process, whatever they are connected to.

What cannot be written to standard output is an error in words. What cannot be written to standard
error is given up: words about progress must not end what they are about.
"""

import contextlib
import io
import os
import sys
from typing import Any, TextIO

from gilscope.errors import CannotWrite

__all__ = ["finish", "prepare"]

_INPUT, _OUTPUT, _ERROR = range(3)


class _Output(io.FileIO):
    def write(self, content: Any, /) -> int:  # noqa: ANN401 - any buffer
        try:
            return super().write(content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CannotWrite(f"cannot write to standard output: {error.strerror}") from error


class _Error(io.FileIO):
    def write(self, content: Any, /) -> int:  # noqa: ANN401 - any buffer
        with contextlib.suppress(OSError):
            return super().write(content)
        return memoryview(content).nbytes


def prepare() -> None:
    """Make all three streams usable. To be called once, before anything else is opened."""
    _open_closed()
    sys.stdin = sys.stdin or open(_INPUT, encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open
    sys.stdout = _text(_Output(_OUTPUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Error(_ERROR, "w", closefd=False), sys.stderr)


def finish(code: int) -> int:
    """Write what is still to be written, and return the exit code of a command that gave *code*."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    except CannotWrite as error:
        _forget_output()
        if not code:
            # Else it has been said, or is not what matters.
            sys.stderr.write(f"error: {error}\n")
            return error.exit_code
    return code


def _open_closed() -> None:
    # Else the next file that is opened, a report or a socket, would be what is written to.
    for number, flags in ((_INPUT, os.O_RDONLY), (_OUTPUT, os.O_RDONLY), (_ERROR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one. Nothing can be written to standard
            # output then: a report that goes nowhere is not to pass for one.
            os.open(os.devnull, flags)


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        # Names of files and functions may be more than the encoding knows.
        errors="backslashreplace",
        line_buffering=raw.fileno() == _ERROR or raw.isatty(),
    )


def _forget_output() -> None:
    # What is left in the buffer would be tried again at the very end.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUTPUT)
    os.close(nowhere)
