"""A process that forks while its threads fight for the GIL, and whose child fights as well.

Known answer: two pids, the GIL at the same address in both, and waits in each that belong to it
alone. The parent's three threads fight for --seconds; `forking` among them forks in the middle.
In the child only that thread is left: it starts two of its own, which fight for --seconds.
The waits of both processes are in the parent's result, as each thread saw them.
"""

import argparse
import json
import os
import threading
import warnings

from crunching import Crunched, Fight, crunch
from handshake import await_begin, finish, ready, say
from old_pythons import native_id


class Forking:
    """The thread that forks."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.seen = Crunched()
        self.tid = 0
        self.child_pid = 0
        self.from_child, self._to_parent = os.pipe()

    def forking(self) -> None:
        """Fight, fork, and fight on."""
        self.tid = native_id()
        crunch(self.seconds / 2, self.seen)
        self.child_pid = os.fork()
        if self.child_pid == 0:
            self._be_the_child()
        os.close(self._to_parent)
        say({"forked": self.child_pid})
        crunch(self.seconds / 2, self.seen)

    def _be_the_child(self) -> None:
        fight = Fight(self.seconds)
        fight.start()
        fight.join()
        os.write(self._to_parent, json.dumps(fight.truth()).encode())
        os._exit(0)


def read_all(fd: int) -> bytes:
    """Return everything up to the end of *fd*."""
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


def main() -> None:
    """Fight, fork, fight, and report both processes' truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    # Forking a process with threads is what this program is for.
    warnings.simplefilter("ignore", DeprecationWarning)
    ready()
    await_begin()
    fight = Fight(options.seconds)
    forking = Forking(options.seconds)
    thread = threading.Thread(target=forking.forking)
    fight.start()
    thread.start()
    fight.join()
    thread.join()
    child = json.loads(read_all(forking.from_child))
    os.waitpid(forking.child_pid, 0)
    own = {"tid": forking.tid, "function": "forking", **forking.seen.as_dict()}
    finish(
        {
            "threads": [*fight.truth(), own],
            "child": {"pid": forking.child_pid, "threads": child},
        }
    )


if __name__ == "__main__":
    main()
