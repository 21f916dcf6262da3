"""One thread keeps the GIL in C for a while, and another waits for it all that time.

Known answer: once a command, `waiter` waits once for --seconds, after a `blocking_call` (a convoy
wait if that is a switch interval or more), because `holder` wakes it without letting go of the GIL
and keeps it while it sleeps. The request to drop it is answered only when that is over.
Each command but `stop` is one round, answered when it is over; the end of stdin ends the process.
"""

import argparse
import ctypes
import os
import threading

from handshake import next_command, ready, say
from old_pythons import native_id

# Calls through PyDLL keep the GIL.
KEEPING = ctypes.PyDLL(None)


class Bell:
    """A pipe that one thread listens to."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()

    def wait(self) -> None:
        """Return when it has been rung."""
        os.read(self._read_fd, 1)

    def ring(self) -> None:
        """Wake the listener, who finds the GIL held."""
        KEEPING.write(self._write_fd, b".", ctypes.c_size_t(1))


def waiter(start: "Bell", done: "Bell") -> None:
    """Come back from a blocking call once a round."""
    tell_tid()
    while True:
        start.wait()
        done.ring()


def holder(seconds: float, begin: "Bell", start: "Bell") -> None:
    """Wake the waiter and keep the GIL, once a round."""
    tell_tid()
    while True:
        begin.wait()
        start.ring()
        KEEPING.usleep(ctypes.c_uint(int(seconds * 1e6)))


TIDS = []
ARRIVED = threading.Semaphore(0)


def tell_tid() -> None:
    """Note the calling thread's id for the ready line."""
    TIDS.append(native_id())
    ARRIVED.release()


def start_thread(function: object, *arguments: object) -> int:
    """Start a thread; return its id when it runs."""
    threading.Thread(target=function, args=arguments, daemon=True).start()
    ARRIVED.acquire()
    return TIDS[-1]


def main() -> None:
    """Obey until the end of stdin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    begin, start, done = Bell(), Bell(), Bell()
    tids = {
        "waiter": start_thread(waiter, start, done),
        "holder": start_thread(holder, options.seconds, begin, start),
    }
    ready(**tids)
    while next_command() not in (None, "stop"):
        # The main thread lets go of the GIL only to listen, so it does not wait itself.
        begin.ring()
        done.wait()
        say({"done": True, "seconds": options.seconds})
    os._exit(0)


if __name__ == "__main__":
    main()
