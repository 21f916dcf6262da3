"""Threads that wait for each other's GIL and know for how long, whichever way they lose it.

Known answer: for each thread, `wait_ns` and `waits` in the result, split by what came before the
wait. hog, spinner, io and native run in C and measure their own calls; a yielder is pure Python
and sees its clock jump. The main thread does not wait between the ready line and the result.

* hog holds for 20 ms and releases for 10 ms, spinner 2 and 6 ms, io 0.02 and 2 ms. Their takes are
  `blocking_call`. A drop that somebody asked for sleeps until the other has taken the GIL:
  `preemption`.
* yielder computes. All its waits are `preemption`, but the one it may have when it begins.
* native does what spinner does in a thread that Python did not start: it has no role.

Each answer is certain up to `uncertain_ns`, the time in which the thread was ready and had no CPU
in waits that the scheduler interrupted. Real-time priority makes that next to nothing, and is the
default where it is permitted and no other workload has it (--policy auto); the result says
`policy`. Under the ordinary policy on a busy machine, a thread that is preempted often loses
its CPU to the GIL's next owner before it sleeps: part of its wait, without an event at its start.

Each wait also has some 20 µs at its ends in which the thread wakes up another, in the calls that
give the GIL up and take it. With two yielders alone that is half a percent of the default switch
interval; --switch-interval makes the waits longer. (`convoy_waits` counts 5 ms or more even so.)
"""

import argparse
import ctypes
import os
import sys
import threading

from gilclock import CpuTimes, CrunchClock, ThreadClock, load, thread_truth
from handshake import await_begin, finish, ready
from priority import POLICIES, schedule

KEEPING, DROPPING = load()
HOLD_AND_RELEASE_NS = {
    "hog": (20_000_000, 10_000_000),
    "spinner": (2_000_000, 6_000_000),
    "io": (20_000, 2_000_000),
    "native": (2_000_000, 6_000_000),
}
DEFAULT_THREADS = "hog,spinner,io,yielder,yielder"


class Worker:
    """One thread, its clocks, and what it saw."""

    def __init__(self, kind: str, name: str, seconds: float) -> None:
        self.kind = kind
        self.name = name
        self.seconds = seconds
        self.clock = ThreadClock()
        self.times = (CpuTimes(), CpuTimes())
        self.seen = CrunchClock()

    def cycle_arguments(self) -> "tuple[object, ...]":
        """Return what the C loop needs: its clock, and the hold, release and total times."""
        hold_ns, release_ns = HOLD_AND_RELEASE_NS[self.kind]
        times = (hold_ns, release_ns, int(self.seconds * 1e9))
        return (ctypes.byref(self.clock), *map(ctypes.c_uint64, times))


def hog(worker: "Worker") -> None:
    """Hold the GIL most of the time."""
    KEEPING.gilclock_run(*worker.cycle_arguments())


def spinner(worker: "Worker") -> None:
    """Hold the GIL for a while, often."""
    KEEPING.gilclock_run(*worker.cycle_arguments())


def io(worker: "Worker") -> None:
    """Hold the GIL for an instant between blocking calls."""
    KEEPING.gilclock_run(*worker.cycle_arguments())


def yielder(worker: "Worker") -> None:
    """Compute in Python, and be made to yield by the evaluation loop."""
    before, after = worker.times
    KEEPING.gilclock_enter(ctypes.byref(worker.clock), ctypes.byref(before))
    look, seen = KEEPING.crunch_look, ctypes.byref(worker.seen)
    worker.seen.until_ns = worker.clock.began_ns + int(worker.seconds * 1e9)
    while look(seen):
        pass
    KEEPING.gilclock_leave(ctypes.byref(worker.clock), ctypes.byref(after))


ROLES = {"hog": hog, "spinner": spinner, "io": io, "yielder": yielder}


def start(worker: "Worker") -> None:
    """Start the worker's thread; it parks in C, without the GIL."""
    if worker.kind == "native":
        error = KEEPING.gilclock_run_native(*worker.cycle_arguments())
        if error:
            raise OSError(error, os.strerror(error))
    else:
        target = ROLES[worker.kind]
        thread = threading.Thread(target=target, args=(worker,), name=worker.name, daemon=True)
        thread.start()


def role_of(kind: str) -> "str | None":
    """Return the role that a tracer should name: the thread's function and where it is."""
    if kind not in ROLES:
        return None
    code = ROLES[kind].__code__
    return "%s (%s:%d)" % (kind, os.path.basename(code.co_filename), code.co_firstlineno)


def truth_of(worker: "Worker") -> "dict[str, object]":
    """Return the thread's true waits; a yielder's come from both of its clocks."""
    truth = thread_truth(worker.name, role_of(worker.kind), worker.clock)
    truth["kind"] = worker.kind
    if worker.kind == "yielder":
        add_crunched(truth, worker)
    return truth


def add_crunched(truth: "dict[str, object]", worker: "Worker") -> None:
    """Add what the yielder saw in Python, and the cross-check against the kernel's clocks."""
    before, after = worker.times
    seen = worker.seen
    preemption = truth["preemption"]
    preemption["waits"] += seen.waits
    preemption["wait_ns"] += seen.wait_ns
    truth["waits"] += seen.waits
    truth["wait_ns"] += seen.wait_ns
    truth["uncertain_ns"] += seen.disturbed_ns
    truth["truth_waits"] = truth["waits"]
    truth["truth_wait_s"] = truth["wait_ns"] / 1e9
    # The whole stretch counted as one hold in C; in truth it ended at each yield.
    truth["hold_ns"] -= seen.wait_ns
    truth["holds"] += seen.waits
    wall_ns = after.wall_ns - before.wall_ns
    cpu_ns = after.cpu_ns - before.cpu_ns
    run_delay_ns = after.scheduling.run_delay_ns - before.scheduling.run_delay_ns
    truth["seen"] = seen.as_dict()
    truth["kernel"] = {
        "wall_ns": wall_ns,
        "cpu_ns": cpu_ns,
        "run_delay_ns": run_delay_ns,
        "off_cpu_ns": wall_ns - cpu_ns,
        "asleep_ns": wall_ns - cpu_ns - run_delay_ns,
        "voluntary_switches": after.scheduling.voluntary - before.scheduling.voluntary,
    }


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", default=DEFAULT_THREADS, help="comma-separated kinds")
    parser.add_argument("--switch-interval", type=float, default=0.005, help="in seconds")
    parser.add_argument("--policy", choices=POLICIES, default="auto")
    options = parser.parse_args()
    options.threads = options.threads.split(",")
    unknown = set(options.threads) - set(ROLES) - {"native"}
    if unknown:
        parser.error("unknown kinds of threads: %s" % ", ".join(sorted(unknown)))
    return options


def main() -> None:
    """Run the threads once and report the truth."""
    options = parse_arguments()
    policy = schedule(options.policy)
    sys.setswitchinterval(options.switch_interval)
    workers = [
        Worker(kind, "%s-%d" % (kind, number), options.seconds)
        for number, kind in enumerate(options.threads)
    ]
    for worker in workers:
        start(worker)
    DROPPING.gilclock_await_arrivals(len(workers))
    ready(threads={worker.name: worker.clock.tid for worker in workers})
    await_begin()
    DROPPING.gilclock_begin(len(workers))
    DROPPING.gilclock_await_departures(len(workers))
    threads = [truth_of(worker) for worker in workers]
    finish({"seconds": options.seconds, "policy": policy, "threads": threads})


if __name__ == "__main__":
    main()
