"""A thread that keeps the GIL in C for seconds on end, asleep, one hold right after the other.

Known answer: `hold S...` on stdin makes the thread `holder` hold the GIL for each of these times in
turn. Each hold begins with a line {"holding": true, "from_ns": …}, written with the GIL held, and
between two of them the GIL is free for some microseconds: from the first such line to the result,
somebody holds it all the time. The result has `holds` as [from_ns, until_ns] of CLOCK_MONOTONIC,
each from the return of a take to the call of the next drop. Nobody else wants the GIL meanwhile;
the holder itself waits for it for a moment when a command comes.

`exit CODE S` ends the process with CODE after S seconds of a hold. The end of stdin ends it too,
but only between holds: it takes a signal to end a hold that never ends.
"""

import ctypes
import os
import threading

from gilclock import ThreadClock, load
from handshake import next_command, ready, say
from old_pythons import native_id

KEEPING, _ = load()
NO_EXIT = -1
STDOUT = 1


class Bell:
    """A pipe that one thread listens to."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()

    def wait(self) -> None:
        """Return when it has been rung."""
        os.read(self._read_fd, 1)

    def ring(self) -> None:
        """Wake the listener, who finds the GIL held until the caller listens itself."""
        KEEPING.write(self._write_fd, b".", ctypes.c_size_t(1))


class Holder:
    """The thread that holds, and what it has been asked for."""

    def __init__(self) -> None:
        self.clock = ThreadClock()
        self.exit_code = NO_EXIT
        self.lengths_ns: list[int] = []
        self.holds: list[tuple[int, int]] = []
        self.begin, self.done = Bell(), Bell()

    def holder(self) -> None:
        """Hold as often and as long as asked, again and again."""
        self.clock.tid = native_id()
        while True:
            self.done.ring()
            self.begin.wait()
            self.holds = [self._hold(ns) for ns in self.lengths_ns]

    def _hold(self, ns: int) -> "tuple[int, int]":
        clock = self.clock
        clock.hold_began_ns = 0
        before_ns = clock.hold_ns
        arguments = (ctypes.c_int(STDOUT), ctypes.c_uint64(ns), ctypes.c_int(self.exit_code))
        began_ns = KEEPING.hold_once(ctypes.byref(clock), *arguments)
        return began_ns, began_ns + clock.hold_ns - before_ns


def obey(holder: "Holder", command: str) -> None:
    """Let the holder hold, and report."""
    verb, *numbers = command.split()
    if verb == "exit":
        holder.exit_code = int(numbers.pop(0))
    holder.lengths_ns = [int(float(seconds) * 1e9) for seconds in numbers]
    # Kept all the time in between, so that nobody waits for the GIL while the holder has it.
    holder.begin.ring()
    holder.done.wait()
    say({"done": True, "tid": holder.clock.tid, "holds": holder.holds})


def main() -> None:
    """Obey until the end of stdin."""
    KEEPING.hold_once.restype = ctypes.c_uint64
    holder = Holder()
    threading.Thread(target=holder.holder, daemon=True).start()
    holder.done.wait()
    ready(holder=holder.clock.tid)
    for command in iter(next_command, None):
        obey(holder, command)
    os._exit(0)


if __name__ == "__main__":
    main()
