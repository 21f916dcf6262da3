"""Threads that hold the GIL for known times and know how long they really held it.

Known answer: for each thread, `hold_ns` and `holds` in the result, from the return of each take to
the call of the next drop: less than the time from acquisition to release, by the few microseconds
in which a thread that has the lock wakes another that waits to hear of it. A thread's wall time
is its holds, `take` and `drop` (the calls, waits included) and `outside_ns`. The main thread needs
the GIL for an instant after the threads have ended, and nobody but these threads before.

* hog holds for 15 to 25 ms and releases for as long, worker for 5 to 9 and 0.5 to 1.5 ms: threads
  with a beat of their own would fall into step with each other and with the switch interval.
* quick holds for 0.2 ms and releases for 0.1 ms, brisk for 0.05 ms each.
* even holds for 5 ms each time; uneven for 1 ms nine times of ten and for 100 ms once, in random
  order. They release for 0 to 10 ms.
* mixed holds for 0.05 to 50 ms, as many in each octave, and releases for 0.1 to 30 ms likewise.
* busy lets go of the GIL every 20 µs and takes it back at once: some 40,000 holds a second.
* native does what worker does in a thread that Python did not start: it has no role.
* yielder computes in Python; its holds end where the evaluation loop makes it yield.

With --rounds each thread but a yielder makes exactly so many holds. With --asleep it holds without
using the CPU, so that a busy machine disturbs it less. Lengths are random, and the same each time.
"""

import argparse
import ctypes
import os
import random
import threading

from gilclock import ThreadClock, load, thread_truth
from handshake import await_begin, finish, ready
from known_waits import Worker as Crunching
from known_waits import add_crunched, yielder
from old_pythons import perf_counter_ns
from priority import POLICIES, schedule

KEEPING, DROPPING = load()
LENGTHS = 1000
_MS = 1_000_000
_u64 = ctypes.c_uint64


class HoldRun(ctypes.Structure):
    """What the C loop is to do, and the time it spent outside the GIL."""

    _fields_ = [
        ("hold_ns", ctypes.POINTER(_u64)),
        ("release_ns", ctypes.POINTER(_u64)),
        ("lengths", _u64),
        ("rounds", _u64),
        ("ns", _u64),
        ("is_asleep", _u64),
        ("outside_ns", _u64),
    ]


def constant(ms: float) -> object:
    """Return a source of lengths that are all the same."""
    return lambda _: int(ms * _MS)


def spread(from_ms: float, to_ms: float) -> object:
    """Return a source of lengths of which every octave has as many."""
    return lambda chance: int(from_ms * (to_ms / from_ms) ** chance.random() * _MS)


def between(from_ms: float, to_ms: float) -> object:
    """Return a source of lengths of which every millisecond has as many."""
    return lambda chance: int(chance.uniform(from_ms, to_ms) * _MS)


def one_of_ten(rare_ms: float, usual_ms: float) -> object:
    """Return a source of lengths that are *rare_ms* exactly once in ten, in random order."""
    dealt: list[float] = []

    def draw(chance: "random.Random") -> int:
        if not dealt:
            dealt.extend([rare_ms] + 9 * [usual_ms])
            chance.shuffle(dealt)
        return int(dealt.pop() * _MS)

    return draw


HOLD_AND_RELEASE = {
    "hog": (between(15, 25), between(15, 25)),
    "worker": (between(5, 9), between(0.5, 1.5)),
    "quick": (constant(0.2), constant(0.1)),
    "brisk": (constant(0.05), constant(0.05)),
    "even": (constant(5), between(0, 10)),
    "uneven": (one_of_ten(100, 1), between(0, 10)),
    "mixed": (spread(0.05, 50), spread(0.1, 30)),
    "busy": (constant(0.02), constant(0)),
    "native": (between(5, 9), between(0.5, 1.5)),
}
KINDS = [*HOLD_AND_RELEASE, "yielder"]
DEFAULT_THREADS = "hog,worker,yielder"


class Holder:
    """One thread whose holds are made in C, and its clocks."""

    def __init__(self, number: int, kind: str, options: "argparse.Namespace") -> None:
        self.kind = kind
        self.name = "%s-%d" % (kind, number)
        self.clock = ThreadClock()
        self._chance = random.Random(number)  # noqa: S311 - the same lengths each time
        self.run = HoldRun(
            hold_ns=self._draw(HOLD_AND_RELEASE[kind][0]),
            release_ns=self._draw(HOLD_AND_RELEASE[kind][1]),
            lengths=LENGTHS,
            rounds=options.rounds,
            ns=int(options.seconds * 1e9),
            is_asleep=options.asleep,
        )

    def _draw(self, source: object) -> object:
        return (_u64 * LENGTHS)(*(source(self._chance) for _ in range(LENGTHS)))

    def start(self) -> None:
        """Start the thread; it parks in C, without the GIL."""
        if self.kind == "native":
            error = KEEPING.hold_run_native(ctypes.byref(self.clock), ctypes.byref(self.run))
            if error:
                raise OSError(error, os.strerror(error))
        else:
            threading.Thread(target=holder, args=(self,), name=self.name, daemon=True).start()

    def truth(self) -> "dict[str, object]":
        """Return what the thread did."""
        role = None if self.kind == "native" else role_of(holder)
        return {
            **thread_truth(self.name, role, self.clock),
            "kind": self.kind,
            "outside_ns": self.run.outside_ns,
        }


class Yielder:
    """One thread that computes in Python, and its clocks."""

    kind = "yielder"

    def __init__(self, number: int, options: "argparse.Namespace") -> None:
        self._worker = Crunching("yielder", "yielder-%d" % number, options.seconds)
        self.clock = self._worker.clock
        self.name = self._worker.name

    def start(self) -> None:
        """Start the thread; it parks in C, without the GIL."""
        threading.Thread(target=yielder, args=(self._worker,), name=self.name, daemon=True).start()

    def truth(self) -> "dict[str, object]":
        """Return what the thread did; its waits and the ends of its holds come from two clocks."""
        truth = thread_truth(self.name, role_of(yielder), self.clock)
        add_crunched(truth, self._worker)
        return {**truth, "kind": self.kind, "outside_ns": 0}


def holder(own: "Holder") -> None:
    """Hold the GIL again and again."""
    KEEPING.hold_run(ctypes.byref(own.clock), ctypes.byref(own.run))


def role_of(function: object) -> str:
    """Return the role that a tracer should name."""
    code = function.__code__
    where = os.path.basename(code.co_filename)
    return "%s (%s:%d)" % (code.co_name, where, code.co_firstlineno)


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=0, help="holds of each thread, or 0")
    parser.add_argument("--threads", default=DEFAULT_THREADS, help="comma-separated kinds")
    parser.add_argument("--asleep", action="store_true", help="hold without using the CPU")
    parser.add_argument("--policy", choices=POLICIES, default="auto")
    options = parser.parse_args()
    options.threads = options.threads.split(",")
    unknown = set(options.threads) - set(KINDS)
    if unknown:
        parser.error("unknown kinds of threads: %s" % ", ".join(sorted(unknown)))
    return options


def main() -> None:
    """Run the threads once and report the truth."""
    options = parse_arguments()
    policy = schedule(options.policy)
    threads = [
        Yielder(number, options) if kind == "yielder" else Holder(number, kind, options)
        for number, kind in enumerate(options.threads)
    ]
    for thread in threads:
        thread.start()
    DROPPING.gilclock_await_arrivals(len(threads))
    ready(threads={thread.name: thread.clock.tid for thread in threads})
    await_begin()
    began_ns = perf_counter_ns()
    DROPPING.gilclock_begin(len(threads))
    DROPPING.gilclock_await_departures(len(threads))
    finish(
        {
            "wall_ns": perf_counter_ns() - began_ns,
            "policy": policy,
            "threads": [thread.truth() for thread in threads],
        }
    )


if __name__ == "__main__":
    main()
