"""Estimates how long GILs are held, by looking at them from outside at random times.

Windows of full mode measure held time exactly. Between them the lock itself is looked at: one
`pread` of the int `locked` in the memory of the process, which costs the process nothing. Each
look decides for the time since the last one, so what is credited is held time in the mean, whatever
the lock does, as long as the times of looking have nothing to do with it. They are jittered,
because a target may well do something every 10 ms.

How far off: at most sqrt(p (1 - p) / n) standard deviation of the share p after n looks, times 1.04
for gaps that vary; at most, because holds longer than a gap are caught more regularly than that.
For p = 0.5 and 95 % certainty after 60 s: 1.3 points at 100 looks a second, 2 at 43, 2.4 at 30, and
4.2 at the least rate of 10, which needs 4 minutes for 2 points. A sum over targets is more certain
than each of them.

A thread that waits for a CPU looks when one becomes free, which is when a holder lets go: with one
CPU for all, and holds of 1 ms that compute, true shares of 43 to 48 % were estimated as 21 to 36 %.
So the thread asks to be woken promptly (`gilscope.scheduling`): with real-time priority the
deviation was within chance, with a short slice it was 3 to 5 points.

What it costs: on a virtual machine with 2 busy CPUs (Linux 6.18, x86-64, CPython 3.11) a wake-up
with one lock takes 30 to 90 µs of CPU time, of which 15 to 40 are the sleep itself and 10 to 25 the
read of cold memory; each further process adds 2 to 4 µs, each further lock of it 1 to 2. Run in a
loop, with all caches warm, a look takes 1.8 µs. So there 0.4 % of a core buys about 50 to 100 looks
a second at one target, 40 at 20 and 25 at 40, and at 200 targets 10 looks a second take 0.45 %. A
process whose window has covered all the time since the last look is passed over.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from gilscope.gil.memory import Memory
from gilscope.scheduling import wake_promptly

__all__ = ["CPU_SHARE", "HeldEstimate", "HeldSampler", "mean_gap_ns"]

_log = logging.getLogger(__name__)

_MS = 1_000_000
_S = 1_000_000_000

# struct _gil_runtime_state around its condition variable, the same since CPython 3.7.
_LOCKED_FROM_COND = -16
_LOCKED = (1).to_bytes(4, "little")

_LONGEST_GAP_NS = 3_000 * _MS
"""After this long without a look the agent must have been stopped; nobody knows what happened."""

CPU_SHARE = 0.004
"""Of one core: what all looking together takes at most, unless the least rate is dearer."""
_AIM = 0.9
"""Part of it that is planned to be used: the next wake-up may cost more than the last ones."""
_SHORTEST_MEAN_GAP_NS = 10 * _MS
_LONGEST_MEAN_GAP_NS = 100 * _MS
_LEAST_FACTOR = 0.5
"""A gap is this factor to this factor plus one times the mean, all equally likely."""
_SMOOTHING = 32
"""Wake-ups over which their cost is averaged, about."""


class HeldEstimate:
    """The time for which one lock was held outside of windows, as far as looks at it tell."""

    __slots__ = (
        "_begin_ns",
        "_last_ns",
        "_observed_at_begin_ns",
        "_observed_ns",
        "held_ns",
        "looks",
        "sampled_ns",
        "unobserved_ns",
    )

    def __init__(self, at_ns: int, observed_ns: int) -> None:
        """Begin at *at_ns*, when windows have covered *observed_ns*."""
        self.held_ns = 0
        """Never falls, and never grows by more than time passes."""
        self.sampled_ns = 0
        """The time that was decided about, held or not."""
        self.unobserved_ns = 0
        """The time that nobody can tell anything about, because looks were seconds apart."""
        self.looks = 0
        """How many of them have decided about some time."""
        self._begin_ns = at_ns
        self._last_ns = at_ns
        self._observed_at_begin_ns = observed_ns
        self._observed_ns = 0

    def wants_look(self, at_ns: int, observed_ns: int) -> bool:
        """Return whether a look at *at_ns* would decide about any time.

        If not, for windows have covered it all, the look may as well be left out.
        """
        observed_ns -= self._observed_at_begin_ns
        observed_ns = max(observed_ns, self._observed_ns)
        if at_ns - self._begin_ns - observed_ns > self.sampled_ns + self.unobserved_ns:
            return True
        self._observed_ns = observed_ns
        self._last_ns = max(self._last_ns, at_ns)
        return False

    def credit(self, at_ns: int, locked: bool, observed_ns: int) -> None:  # noqa: FBT001
        """Note whether the lock was held at *at_ns*, when windows had covered *observed_ns*.

        What is decided is the time since the last look less what windows have covered of it.
        """
        # Windows that seem to have covered less than before were caught in the middle of a change.
        self._observed_ns = max(self._observed_ns, observed_ns - self._observed_at_begin_ns)
        decided_ns = self.sampled_ns + self.unobserved_ns
        undecided_ns = at_ns - self._begin_ns - self._observed_ns - decided_ns
        is_late = at_ns - self._last_ns > _LONGEST_GAP_NS
        self._last_ns = max(self._last_ns, at_ns)
        if undecided_ns <= 0:
            return
        if is_late:
            self.unobserved_ns += undecided_ns
            return
        self.looks += 1
        self.sampled_ns += undecided_ns
        if locked:
            self.held_ns += undecided_ns


def mean_gap_ns(cost_ns: float, cpu_share: float) -> float:
    """Return how far apart wake-ups are in the mean where each takes *cost_ns* of CPU time."""
    return min(max(cost_ns / (cpu_share * _AIM), _SHORTEST_MEAN_GAP_NS), _LONGEST_MEAN_GAP_NS)


@dataclass(frozen=True, slots=True)
class _Target:
    pid: int
    memory: Memory
    estimates: dict[int, HeldEstimate] = field(default_factory=dict)
    """By address of ``cond``."""


class HeldSampler:
    """Looks at all locks of all processes whenever it wakes up, in a thread of its own."""

    def __init__(
        self,
        observed_ns: Callable[[int, int], int],
        random: Random,
        *,
        cpu_share: float = CPU_SHARE,
    ) -> None:
        """Take from ``observed_ns(pid, at_ns)`` how long windows have covered *pid* until *at_ns*.

        It is called in the sampler's thread too, for every process that has been added and not
        dropped, without any of the sampler's locks. *cpu_share* is of one core.
        """
        self._observed_ns = observed_ns
        self._random = random
        self._cpu_share = cpu_share
        self._targets: dict[int, _Target] = {}
        self._mutex = threading.Lock()
        # Held, but for the moment in which it wakes the thread: waiting for it with a time-out is
        # the cheapest sleep that can be ended.
        self._alarm = threading.Lock()
        self._alarm.acquire()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._cost_ns = 0.0
        self._mean_gap_ns = float(_SHORTEST_MEAN_GAP_NS)
        self._cpu_ns = 0

    @property
    def cpu_ns(self) -> int:
        """The CPU time that the thread has used."""
        return self._cpu_ns

    @property
    def mean_gap_ns(self) -> float:
        """How far apart wake-ups are at present, in the mean."""
        return self._mean_gap_ns

    def add(self, pid: int, cond: int, memory: Memory) -> None:
        """Look at the lock at *cond* from now on; *memory* must stay open until `drop`.

        A lock that is there already goes on as it is.
        """
        at_ns = time.monotonic_ns()
        estimate = HeldEstimate(at_ns, self._observed_ns(pid, at_ns))
        with self._mutex:
            target = self._targets.setdefault(pid, _Target(pid, memory))
            target.estimates.setdefault(cond, estimate)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="held-sampler", daemon=True)
                self._thread.start()
        self._ring()

    def drop(self, pid: int) -> None:
        """Forget all locks of *pid*; its memory is not touched any more after that."""
        with self._mutex:
            target = self._targets.pop(pid, None)
            if target is not None:
                target.estimates.clear()

    def look(self, pid: int) -> None:
        """Look at the locks of *pid* now, so that what is read next is up to date."""
        target = self._targets.get(pid)
        if target is not None:
            self._look([target])

    def held_ns(self, pid: int, cond: int) -> int:
        """Return how long the lock was held outside of windows; raises KeyError if unknown."""
        return self._targets[pid].estimates[cond].held_ns

    def sampled_ns(self, pid: int, cond: int) -> int:
        """Return the time outside of windows that `held_ns` is a part of; raises KeyError."""
        return self._targets[pid].estimates[cond].sampled_ns

    def unobserved_ns(self, pid: int, cond: int) -> int:
        """Return the time in which nobody looked, for the agent was stopped; raises KeyError."""
        return self._targets[pid].estimates[cond].unobserved_ns

    def looks(self, pid: int, cond: int) -> int:
        """Return how many looks `sampled_ns` rests on; raises KeyError."""
        return self._targets[pid].estimates[cond].looks

    def close(self) -> None:
        """Stop looking; what has been estimated can still be read."""
        self._is_closed = True
        self._ring()
        if self._thread is not None:
            self._thread.join()

    def _ring(self) -> None:
        with self._mutex:
            if self._alarm.locked():
                self._alarm.release()

    def _run(self) -> None:
        if not wake_promptly():
            _log.info("CAP_SYS_NICE is missing: held time may be too low while all CPUs are busy")
        try:
            while not self._is_closed:
                self._alarm.acquire(timeout=self._next_gap_s())
                self._look(tuple(self._targets.values()))
                self._pay(time.thread_time_ns())
        except Exception:  # noqa: BLE001 - whatever fails, the agent goes on
            _log.exception("held time is not sampled any more")

    def _next_gap_s(self) -> float:
        if not self._targets:
            return -1  # until somebody rings
        # `uniform` would be twice the code, and what runs so seldom is never in a cache.
        return (_LEAST_FACTOR + self._random.random()) * self._mean_gap_ns / _S

    def _pay(self, cpu_ns: int) -> None:
        cost_ns = cpu_ns - self._cpu_ns
        self._cpu_ns = cpu_ns
        # The first one, with the start of the thread in it, is the dearest.
        self._cost_ns += (cost_ns - self._cost_ns) / (_SMOOTHING if self._cost_ns else 1)
        self._mean_gap_ns = mean_gap_ns(self._cost_ns, self._cpu_share)

    def _look(self, targets: Sequence[_Target]) -> None:
        # One time for all: the few microseconds between them are the same at every look.
        at_ns = time.monotonic_ns()
        observed_ns = [self._observed_ns(target.pid, at_ns) for target in targets]
        with self._mutex:
            for target, in_windows_ns in zip(targets, observed_ns, strict=True):
                for cond, estimate in target.estimates.items():
                    if not estimate.wants_look(at_ns, in_windows_ns):
                        continue
                    try:
                        content = target.memory.read(cond + _LOCKED_FROM_COND, 4)
                    except OSError:
                        continue  # the process has ended, or runs another program now
                    estimate.credit(at_ns, content == _LOCKED, in_windows_ns)
