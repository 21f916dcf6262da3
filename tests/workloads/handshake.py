"""How a workload talks to whoever started it: JSON lines on stdout, command lines on stdin."""

import json
import os
import platform

__all__ = ["await_begin", "finish", "next_command", "ready", "say"]

_STDIN = 0
_STDOUT = 1


def say(message: "dict[str, object]") -> None:
    """Write one JSON line, in one system call, so that lines of several processes never mix."""
    os.write(_STDOUT, json.dumps(message).encode() + b"\n")


def ready(**facts: object) -> None:
    """Say that every thread is in place and that nothing happens until the next command."""
    say({"ready": True, "pid": os.getpid(), "python": platform.python_version(), **facts})


def next_command() -> "str | None":
    """Return the next line of stdin without its end, None at the end of stdin.

    Reads byte by byte: nothing may be left in a buffer when the process forks or execs.
    """
    line = b""
    while True:
        byte = os.read(_STDIN, 1)
        if not byte:
            return line.decode() if line else None
        if byte == b"\n":
            return line.decode()
        line += byte


def await_begin() -> None:
    """Return at the first command; end the process if whoever started it is gone."""
    if next_command() is None:
        os._exit(1)


def finish(result: "dict[str, object]", exit_code: int = 0) -> None:
    """Write the result, wait for one more command or the end of stdin, and end at once.

    The threads stay where they are until then, because a thread that ends needs the GIL.
    """
    say({"done": True, **result})
    next_command()
    os._exit(exit_code)
