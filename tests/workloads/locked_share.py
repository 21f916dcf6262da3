"""One thread keeps the GIL for random times and lets go of it for random times in between.

Known answer: it says when it let go of the GIL and when it had it back, on CLOCK_MONOTONIC; all
the rest of the time from `begin_ns` to `end_ns` the GIL is held, by nobody but this thread. Before
and after that it listens to its stdin, without the GIL. Each held time is a usleep() that keeps the
GIL, or with --spin a loop that needs a CPU.
"""

import argparse
import ctypes
import random
import time

from handshake import await_begin, finish, ready, say
from old_pythons import monotonic_ns

# Calls through PyDLL keep the GIL.
KEEPING = ctypes.PyDLL(None)


def sleep_on_it(seconds: float) -> None:
    """Keep the GIL without using a CPU."""
    KEEPING.usleep(ctypes.c_uint(int(seconds * 1e6)))


def spin_on_it(seconds: float) -> None:
    """Keep the GIL and a CPU."""
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        pass


def main() -> None:
    """Do it once, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--held-ms", type=float, default=10.0, help="mean of the held times")
    parser.add_argument("--free-ms", type=float, default=10.0, help="mean of the times between")
    parser.add_argument("--spin", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = random.Random(options.seed)  # noqa: S311 - the same each time
    hold = spin_on_it if options.spin else sleep_on_it
    free = []
    ready()
    await_begin()
    say({"begun": True})
    begin_ns = monotonic_ns()
    while monotonic_ns() < begin_ns + options.seconds * 1e9:
        hold(chosen.expovariate(1) * options.held_ms / 1e3)
        free_s = chosen.expovariate(1) * options.free_ms / 1e3
        from_ns = monotonic_ns()
        time.sleep(free_s)
        free.append((from_ns, monotonic_ns()))
    finish({"begin_ns": begin_ns, "end_ns": monotonic_ns(), "free": free})


if __name__ == "__main__":
    main()
