"""Estimates how long GILs are held, by sampling them from outside at random times.

Windows of full mode measure held time exactly. Between them the lock itself is sampled: one
read of the int `locked` in the memory of the process, which costs the process nothing. Each
sample decides for the time since the last, so what is credited is held time in the mean, whatever
the lock does, as long as the times of samples have nothing to do with it. They are jittered,
because a target may well do something every 10 ms.

How far off: at most sqrt(p (1 - p) / n) standard deviation of the share p after n samples, times
1.04 for gaps that vary; at most, because holds longer than a gap are caught more regularly than
that. For p = 0.5 and 95 % certainty after 60 s: 1.3 points at 100 samples a second, 2 at 43, 2.4 at
30, and 4.2 at 10, which needs 4 minutes for 2 points. That is the least rate for up to 20 locks;
for 200 and more it is 1, with 13 points after a minute and 2 after 45. A sum over targets is more
certain than each of them: as certain as all its samples together.

So a lock that is nearly always free, or held, needs few samples for the same certainty, and whoever
serves for ever says what is enough: then wake-ups are as rare as the lock allows that needs most of
them, by the share of its last 256 samples, about. As that lets the times of samples depend on the
lock, the mean is off by up to 0.2 points where it is held and free for seconds in turns; a cycle of
that length deviates by less than half as much as chance would have it, so that both together stay
within the bound.

A sampler that waits for a CPU runs when one becomes free, which is when a holder releases: with one
CPU for all, and holds of 1 ms that compute, true shares of 43 to 48 % were estimated as 21 to 36 %.
So the thread asks to be woken promptly (`gilscope.system.scheduling`): with real-time priority the
deviation was within chance, with a short slice it was 3 to 5 points.

The thread that samples is written in C (`agent/native/lock_sampler`) and does not hold the agent's
GIL while it works: neither does a scrape delay its samples, nor do they delay a scrape.

What it costs: on a virtual machine with 2 CPUs (Linux 6.18, x86-64) and load enough for ten, where
nothing stays in a cache, a wake-up with 20 locks of 20 processes takes 100 to 160 µs of CPU time,
of which some 30 are the sleep itself, some 25 the first read and 3 to 4 each further one (two
system calls, see `agent/native/remote_memory`). A thread in Python took 240 to 350 by turns with
it, and 60 to 100 where the machine did less else. A process whose window has covered all the time
since the last sample is passed over.
"""

import logging
import math
import threading
import time
from random import Random
from typing import NamedTuple, Protocol

from gilscope.gil.probes.coverage import NEVER_OPEN, Coverage
from gilscope.gil.tracing._lock_sampler import Sampler
from gilscope.runtimes.base import HeldWord
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.system.named_thread import named_thread
from gilscope.system.scheduling import wake_promptly
from gilscope.system.waiting_thread import Waiting, waits_for_memory

__all__ = ["CPU_SHARE", "Figures", "LockSampler", "MemoryFile"]

_log = logging.getLogger(__name__)

CPU_SHARE = 0.002
"""Of one core: what all sampling together takes at most, unless the least rate is costlier."""

_GIL_WORD = HeldWord(GLIBC_X86_64.locked, 4, 1, is_held_if_equal=True)

_DEVIATIONS = 1.96 * 1.04
"""From the mean, within which 95 % are, for gaps that vary."""
_MINUTE_S = 60

_PATIENCE_S = 2.0
_MOST_LOST = 8


class Figures(NamedTuple):
    """What is estimated of one lock."""

    held_ns: int
    """It was held outside of windows. Never falls, and never grows by more than time passes."""
    sampled_ns: int
    """The time outside of windows that this is a part of."""
    unobserved_ns: int
    """Time without samples, for the agent was stopped."""
    samples: int
    """How many `sampled_ns` rests on."""


_NOTHING = Figures(0, 0, 0, 0)


class MemoryFile(Protocol):
    """The memory of a process as a file; `gilscope.process.memory.ProcessMemory` provides it."""

    @property
    def thread_id(self) -> int:
        """A thread of the process, through which the kernel finds its memory."""

    def fileno(self) -> int:
        """Return a descriptor of /proc/PID/mem."""


class LockSampler:
    """Samples all locks of all processes whenever it wakes up, in a thread of its own."""

    def __init__(
        self, random: Random, *, cpu_share: float = CPU_SHARE, error: float | None = None
    ) -> None:
        """Take the times of samples from *random*; *cpu_share* is of one core.

        Samples are no more than needed for held shares to be off by *error* at most after a minute
        (95 %), 0.02 being two points; None: they are as many as *cpu_share* allows.
        """
        enough_samples = math.inf if error is None else (_DEVIATIONS / error) ** 2 / _MINUTE_S
        self._random = random
        self._rate = (cpu_share, enough_samples)
        self._native = self._sampler()
        self._thread: threading.Thread | None = None
        self._waiting = Waiting()
        self._locks: dict[tuple[int, int], tuple[MemoryFile, HeldWord]] = {}
        self._coverages: dict[int, Coverage] = {}
        self._carried: dict[tuple[int, int], Figures] = {}
        """What those have come to that have been replaced since."""
        self._lost: list[threading.Thread] = []
        self._lost_cpu_ns = 0

    @property
    def cpu_ns(self) -> int:
        """The CPU time that the thread has used."""
        return self._lost_cpu_ns + self._native.cpu_ns

    @property
    def mean_gap_ns(self) -> float:
        """How far apart wake-ups are at present, in the mean."""
        return self._native.mean_gap_ns

    def add(
        self,
        pid: int,
        cond: int,
        memory: MemoryFile,
        coverage: Coverage = NEVER_OPEN,
        word: HeldWord = _GIL_WORD,
    ) -> None:
        """Sample the lock at *cond* from now on, in *memory*, where *word* says if it is held.

        *coverage* is that of the windows of *pid* now. A lock that is there already continues as it
        is.
        """
        self._locks.setdefault((pid, cond), (memory, word))
        self._coverages.setdefault(pid, coverage)
        self._native.add(
            pid, cond, memory.thread_id, memory.fileno(), time.monotonic_ns(), coverage, word
        )
        if self._thread is None and not self._is_exhausted:
            self._start()

    def cover(self, pid: int, coverage: Coverage) -> None:
        """Take note that a window of *pid* has just begun or ended."""
        if pid in self._coverages:
            self._coverages[pid] = coverage
        self._native.cover(pid, coverage)

    def drop(self, pid: int) -> None:
        """Forget all locks of *pid*. No sample of them begins any more."""
        self._coverages.pop(pid, None)
        for key in [key for key in self._locks if key[0] == pid]:
            del self._locks[key]
            self._carried.pop(key, None)
        self._native.drop(pid)

    def sample(self, pid: int) -> None:
        """Sample the locks of *pid* now, so that what is read next is up to date."""
        self._native.sample(pid, time.monotonic_ns())

    def figures(self, pid: int, cond: int) -> Figures:
        """Return what the samples of a lock have come to; raises KeyError if it is unknown."""
        found = self._native.figures(pid, cond)
        carried = self._carried.get((pid, cond), _NOTHING)
        return Figures(*(now + before for now, before in zip(found, carried, strict=True)))

    def unanswered(self) -> int | None:
        """Return the process whose memory does not answer the thread, None if there is none.

        To be asked a few times a second. Samples of all others continue in a thread of their own,
        and those of the next program of a process that was dropped meanwhile: None, then.
        """
        pid, read, is_dropped = self._native.reading()
        thread_id = 0 if self._thread is None else self._thread.native_id or 0
        waits = pid != 0 and waits_for_memory(thread_id)
        if self._waiting.note((pid, read), waits=waits) < _PATIENCE_S or not waits:
            return None
        hanging = None if is_dropped else pid
        self._replace(hanging)
        return hanging

    def close(self) -> None:
        """Stop looking; what has been estimated can still be read."""
        self._native.close()
        if self._thread is not None:
            # It may wait for memory that never comes; then it ends with the agent.
            self._thread.join(_PATIENCE_S)

    def _replace(self, hanging: int | None) -> None:
        """Leave the thread that waits for memory to itself, and begin with another.

        That samples all but the process *hanging*.
        """
        native, locks, coverages = self._native, dict(self._locks), dict(self._coverages)
        figures = {key: self.figures(*key) for key in locks if key[0] != hanging}
        for pid in coverages:
            self.drop(pid)
        # It ends when the memory has answered.
        native.close()
        if self._thread is not None:
            self._lost.append(self._thread)
        self._lost_cpu_ns += native.cpu_ns
        self._native, self._thread = self._sampler(), None
        if self._is_exhausted:
            _log.warning("held time is not sampled any more: too many processes do not answer")
        for key, carried in figures.items():
            self._carried[key] = carried
            memory, word = locks[key]
            self.add(*key, memory, coverages[key[0]], word)

    @property
    def _is_exhausted(self) -> bool:
        self._lost = [thread for thread in self._lost if thread.is_alive()]
        return len(self._lost) > _MOST_LOST

    def _sampler(self) -> Sampler:
        return Sampler(self._random.getrandbits(64), GLIBC_X86_64.locked, *self._rate)

    def _start(self) -> None:
        self._thread = named_thread("lock-sampler", self._run, self._native)
        self._thread.start()

    def _run(self, native: Sampler) -> None:
        try:
            if not wake_promptly():
                _log.info(
                    "CAP_SYS_NICE is missing: held time may be too low while all CPUs are busy"
                )
            native.run()
        except Exception:  # noqa: BLE001 - whatever fails, the agent continues
            _log.exception("held time is not sampled any more")
