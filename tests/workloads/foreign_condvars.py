"""Threads that wait on condition variables of their own, while nobody wants the GIL.

Known answer: 0 waits for the GIL, on every thread, in some seconds of timed waits by six threads:
four that Python did not start and two Python threads in a blocking call. Three of the variables
lie in a structure with the members of a held GIL: an interval of 5000 µs, a holder, locked == 1,
a mutex right behind, a second variable that is signalled where take_gil would.
"""

import argparse
import ctypes
import threading

from gilclock import ForeignClock, ThreadClock, load, thread_truth
from handshake import await_begin, finish, ready

KEEPING, DROPPING = load()
TICK_NS = 5_000_000


def blocked(
    clock: "ThreadClock",
    foreign: "ForeignClock",
    is_lookalike: bool,  # noqa: FBT001
    ns: int,
) -> None:
    """Wait on a variable that is not a GIL's, inside one long blocking call."""
    KEEPING.foreign_wait(
        ctypes.byref(clock),
        ctypes.byref(foreign),
        ctypes.c_int(is_lookalike),
        ctypes.c_uint64(TICK_NS),
        ctypes.c_uint64(ns),
    )


def main() -> None:
    """Wait for a while and report what was waited for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    ns = int(parser.parse_args().seconds * 1e9)
    native = [ForeignClock() for _ in range(4)]
    for number, foreign in enumerate(native):
        KEEPING.foreign_start(
            ctypes.byref(foreign),
            ctypes.c_int(number % 2),
            ctypes.c_uint64(TICK_NS),
            ctypes.c_uint64(ns),
        )
    python = [(ThreadClock(), ForeignClock()) for _ in range(2)]
    for number, (clock, foreign) in enumerate(python):
        threading.Thread(
            target=blocked, args=(clock, foreign, number == 1, ns), daemon=True
        ).start()
    DROPPING.gilclock_await_arrivals(6)
    ready(threads=7)
    await_begin()
    DROPPING.gilclock_begin(6)
    DROPPING.gilclock_await_departures(6)
    role = "blocked (foreign_condvars.py:%d)" % blocked.__code__.co_firstlineno
    every = native + [foreign for _, foreign in python]
    finish(
        {
            "waits": 0,
            "wait_ns": 0,
            "foreign_waits": sum(foreign.waits for foreign in every),
            "foreign_wait_ns": sum(foreign.wait_ns for foreign in every),
            "threads": [thread_truth("blocked", role, clock) for clock, _ in python],
        }
    )


if __name__ == "__main__":
    main()
