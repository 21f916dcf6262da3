"""Two interpreters with a GIL of their own each, in which two threads make each other yield.

Known answer: three GILs in one process. The main interpreter's is hardly contended. On each of the
other two, the two fighters together wait for about --seconds, as each of them saw; all those waits
are `preemption`, and none crosses from one interpreter to the other: with two free cores both
fights last --seconds. Needs CPython 3.12 or later; before, the ready line says `"ready": false`
with a reason, and the exit code is 3.
"""

import argparse
import json
import os
import sys
import threading

from handshake import await_begin, finish, ready, say

if sys.version_info >= (3, 13):
    import _interpreters
elif sys.version_info >= (3, 12):
    import _xxsubinterpreters

NOT_SUPPORTED = 3

PREPARE = """
import json, os, sys
sys.path.insert(0, {directory!r})
from crunching import Fight
fight = Fight({seconds!r})
"""

FIGHT = """
fight.start()
fight.join()
os.write({fd}, json.dumps(fight.truth()).encode())
os.close({fd})
"""


def create() -> object:
    """Create an interpreter with its own GIL; return its id.

    In 3.12 the id is an object, and the interpreter goes when the last such object does.
    """
    if sys.version_info >= (3, 13):
        return _interpreters.create("isolated")
    return _xxsubinterpreters.create(isolated=True)


def run(interpreter: object, code: str) -> None:
    """Run *code* in the interpreter, in the calling thread."""
    if sys.version_info >= (3, 13):
        failure = _interpreters.exec(interpreter, code)
        if failure is not None:
            raise RuntimeError(failure.formatted)
    else:
        _xxsubinterpreters.run_string(interpreter, code)


class Arena:
    """One interpreter, the thread that runs it, and the pipe that its result comes through."""

    def __init__(self, seconds: float) -> None:
        self.interpreter = create()
        directory = os.path.dirname(os.path.abspath(__file__))
        run(self.interpreter, PREPARE.format(directory=directory, seconds=seconds))
        self._read_fd, write_fd = os.pipe()
        self.thread = threading.Thread(
            target=run, args=(self.interpreter, FIGHT.format(fd=write_fd))
        )

    def truth(self) -> "dict[str, object]":
        """Return what the fighters saw."""
        with os.fdopen(self._read_fd, "rb") as pipe:
            return {"interpreter": int(self.interpreter), "threads": json.loads(pipe.read())}


def main() -> None:
    """Fight in both interpreters at once and report the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    if sys.version_info < (3, 12):
        say({"ready": False, "pid": os.getpid(), "reason": "one GIL for all before 3.12"})
        sys.exit(NOT_SUPPORTED)
    arenas = [Arena(options.seconds) for _ in range(2)]
    ready(interpreters=[int(arena.interpreter) for arena in arenas])
    await_begin()
    for arena in arenas:
        arena.thread.start()
    for arena in arenas:
        arena.thread.join()
    finish({"interpreters": [arena.truth() for arena in arenas]})


if __name__ == "__main__":
    main()
