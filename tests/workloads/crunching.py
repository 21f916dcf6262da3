"""Pure Python threads that are preempted, and that know when: their clock jumps.

A thread that only reads the clock sees a jump whenever it was off the CPU. If the kernel counts a
voluntary switch for it across the jump, the thread slept, and the only thing it can sleep on is
the GIL: the jump is one wait, from giving the GIL up to having it again. An involuntary switch
(the scheduler's) is a jump without that count, and no wait.

Good for programs whose answer is "about so much" and that cannot load C code, such as
subinterpreters: a yield in the few instructions between the clock and the count is missed, and
what the scheduler did in the same jump counts as wait. known_waits.py has the exact clock.
"""

import os
import resource
import threading

from old_pythons import native_id, perf_counter_ns

__all__ = ["Crunched", "Fight", "crunch"]

# Longer than a turn of the loop or an interrupt, shorter than the way into sleep and back.
_JUMP_NS = 4_000


class Crunched:
    """What a thread saw: waits, the nanoseconds they took, and the longest."""

    def __init__(self) -> None:
        self.waits = 0
        self.wait_ns = 0
        self.long_waits = 0
        self.longest_wait_ns = 0
        self.other_jumps = 0
        self.other_jump_ns = 0
        self.wall_ns = 0

    def as_dict(self) -> "dict[str, int]":
        """Return the members by name."""
        return dict(vars(self))


def crunch(seconds: float, seen: "Crunched", clock=perf_counter_ns) -> None:
    """Compute for *seconds*, adding to *seen* each time the thread was made to yield."""
    usage, whose = resource.getrusage, resource.RUSAGE_THREAD
    sleeps = usage(whose).ru_nvcsw
    began = last = clock()
    until = began + int(seconds * 1e9)
    while last < until:
        now = clock()
        if now - last > _JUMP_NS:
            jump_ns = now - last
            sleeps_before, sleeps = sleeps, usage(whose).ru_nvcsw
            if sleeps != sleeps_before:
                seen.waits += 1
                seen.wait_ns += jump_ns
                seen.long_waits += jump_ns >= 5_000_000
                seen.longest_wait_ns = max(seen.longest_wait_ns, jump_ns)
            else:
                seen.other_jumps += 1
                seen.other_jump_ns += jump_ns
        last = now
    seen.wall_ns += last - began


class Fight:
    """Threads that compute side by side, each with what it saw: only `preemption` is counted.

    Outside it there are a few waits of `blocking_call`, where a thread starts and where it ends.
    """

    def __init__(self, seconds: float, threads: int = 2) -> None:
        self.seen: dict[int, Crunched] = {}
        self._threads = [
            threading.Thread(target=self._fighter, args=(seconds,)) for _ in range(threads)
        ]

    def _fighter(self, seconds: float) -> None:
        seen = self.seen[native_id()] = Crunched()
        crunch(seconds, seen)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Return when all of them have ended."""
        for thread in self._threads:
            thread.join()

    def truth(self) -> "list[dict[str, object]]":
        """Return for each thread what it saw up to now."""
        code = Fight._fighter.__code__
        where = "%s:%d" % (os.path.basename(code.co_filename), code.co_firstlineno)
        return [
            {"tid": tid, "function": "_fighter", "where": where, **seen.as_dict()}
            for tid, seen in list(self.seen.items())
        ]
