"""Samples who holds the locks of all traced processes, from outside and at random times.

Waits tell who kept others waiting. Where nobody waits, as in a program of one busy thread or an
event loop that is blocked, only a sample of the holder itself says whose code it is. That
reads the lock, the thread state and the frames of the holder out of its memory; the process is not
stopped and does not notice.

Each sample decides for the time since the last one: it was held there all the time, or by nobody.
That is right in the mean as long as samples come at times that have nothing to do with what the
process does, so they are jittered. After n samples a share p is off by at most
1.96 sqrt(p (1 - p) / n) in 19 of 20 cases, a little more for gaps that vary.

The thread that samples is woken promptly, and reads itself: one that waits for a CPU runs when a
holder releases (see `gilscope.gil.tracing.lock_sampler`), and so would one that reads for it. On
one CPU with three other busy programs, and holds of a millisecond, ordinary threads that read saw
21 to 29 % less held time than the lock's own sampler; this one, 5 to 11 %, for it needs the agent's
GIL. Where memory does not answer the thread is left behind, and another one takes its place.

A free lock is sampled in 7 to 20 us, a held one in 200 to 300 (Linux 6.18 on an AMD EPYC).
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from random import Random

from gilscope.errors import GilscopeError
from gilscope.gil.tracing.holders.states import Part, StateReader
from gilscope.model.gil import HeldBy, HolderSamples
from gilscope.model.moment.hold_state import HoldState
from gilscope.model.stack import Stack, StackState
from gilscope.process.reads import Reads
from gilscope.runtimes.base import Holders
from gilscope.system.named_thread import named_thread
from gilscope.system.scheduling import wake_promptly
from gilscope.system.shortage import explained_shortage
from gilscope.system.waiting_thread import Waiting, waits_for_memory
from gilscope.values import dataclass

__all__ = ["HolderSampler", "HolderSource"]

_log = logging.getLogger(__name__)

_LEAST_GAP_NS = 10_000_000
"""More than a hundred samples a second tell little more."""
_LONGEST_GAP_NS = 300_000_000_000
"""Samples that are farther apart, because the agent was stopped, decide about nothing."""
_MOST_AT_ONCE = 8
"""Processes of a wake-up, drawn anew each time: it is to be brief, however many there are, for it
goes before whatever else would run."""
_FIRST_COST_NS = 1_000_000
_SMOOTHING = 8
_JUMP = 2
"""A single sample that costs much more, because files are read for the first time, must not make
the next ones rare; what costs more for long soon counts as a whole."""
_MOST_STACKS = 2_000
"""That are told apart in one process; time at further ones is at an unknown stack."""
_MOST_DETAILS = 64
"""Different states of one process, with what is known beside them; further ones are told without:
a program may read from ever new sockets."""
_UNKNOWN = Stack((), StackState.UNKNOWN)
_PATIENCE_S = 2.0
_MOST_LOST = 8


_Held = dict[tuple[Stack, HoldState], tuple[int, int]]
"""Time held, and time that others waited meanwhile, ns."""


@dataclass(frozen=True, slots=True)
class HolderSource:
    """What is asked of one process."""

    holders: Holders
    states: StateReader
    conds: Callable[[], Sequence[int]]
    """Its locks, as of each sample: they come and go."""
    waiting: Callable[[int], int]
    """How many threads wait for a lock."""
    shortened: Callable[[Stack], Stack]
    """How a stack is kept."""
    reads: Reads
    """Told of waiting for its memory, and given up where that does not answer."""


@dataclass(slots=True, eq=False)
class _Process:
    """One process and what samples of it have come to."""

    source: HolderSource
    last_ns: int
    samples: int = 0
    sampled_ns: int = 0
    held: _Held = field(default_factory=dict)
    states: set[HoldState] = field(default_factory=set)
    pending: list[HeldBy] = field(default_factory=list)
    """What may turn out to be in another state."""


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """One sample of a process that is being made; no other is equal to it."""

    pid: int
    process: _Process


class _Sampling:
    """A thread that samples."""

    def __init__(self, run: Callable[["_Sampling"], None]) -> None:
        self.thread = named_thread("holder-sampler", run, self)
        self.reading: _Reading | None = None
        """What it reads just now."""


class HolderSampler:
    """Samples processes each time it wakes up, in a thread of its own."""

    def __init__(self, random: Random, cpu_share: float) -> None:
        """Take the times of samples from *random*; they cost *cpu_share* of a core at the most."""
        self._random = random
        self._cpu_share = cpu_share
        self._cost_ns = float(_FIRST_COST_NS)
        self._lock = threading.Lock()
        self._processes: dict[int, _Process] = {}
        self._closed = threading.Event()
        self._has_any = threading.Event()
        self._sampling: _Sampling | None = None
        self.lost: list[threading.Thread] = []
        """Threads that were left behind, and may be there still."""
        self._waiting = Waiting()
        self._awaited: tuple[_Reading, float] | None = None
        """What the thread has waited for, and for how many seconds."""
        self._has_told_shortage = False
        self._has_told_exhaustion = False
        self.cpu_ns = 0
        """CPU time that it has used."""

    def add(self, pid: int, source: HolderSource) -> None:
        """Sample the locks of *pid* from now on."""
        with self._lock:
            self._processes[pid] = _Process(source, time.monotonic_ns())
        self._has_any.set()
        if self._sampling is None:
            self._start()

    def drop(self, pid: int) -> None:
        """Sample *pid* no more, and forget it."""
        with self._lock:
            self._processes.pop(pid, None)
            if not self._processes:
                self._has_any.clear()

    def figures(self, pid: int) -> HolderSamples | None:
        """Return what samples of *pid* have come to; None: it is not sampled."""
        with self._lock:
            process = self._processes.get(pid)
            if process is None:
                return None
            sums = dict(process.held)
            for part in process.pending:
                _credit(sums, part)
            samples, sampled_ns = process.samples, process.sampled_ns
        held = [
            HeldBy(stack, held_ns, state, waited_ns)
            for (stack, state), (held_ns, waited_ns) in sums.items()
        ]
        held.sort(key=lambda each: -each.held_ns)
        return HolderSamples(samples, sampled_ns, tuple(held))

    def give_up_unanswered(self) -> None:
        """Give up the process whose memory does not answer the thread, if there is one.

        To be called a few times a second. Samples of all others continue in a thread of their own.
        """
        sampling = self._sampling
        if sampling is None:
            if self._processes:
                self._start()
            return
        reading = sampling.reading
        if self._awaited is not None and self._awaited[0] is not reading:
            # It has come; all others have waited for it.
            awaited, waited_s = self._awaited
            awaited.process.source.reads.waited(waited_s)
            self._awaited = None
        if reading is None or not waits_for_memory(sampling.thread.native_id or 0):
            return
        waited_s = self._waiting.note(reading, waits=True)
        self._awaited = reading, waited_s
        if waited_s >= _PATIENCE_S:
            self._replace(sampling, reading)

    def close(self) -> None:
        """Sample nothing any more."""
        self._closed.set()
        self._has_any.set()
        if self._sampling is not None:
            # It may wait for memory that never comes; then it ends with the agent.
            self._sampling.thread.join(_PATIENCE_S)

    def _start(self) -> None:
        self.lost = [thread for thread in self.lost if thread.is_alive()]
        if len(self.lost) > _MOST_LOST:
            if not self._has_told_exhaustion:
                self._has_told_exhaustion = True
                _log.warning("holders are not sampled any more: too many processes do not answer")
            return
        self._sampling = sampling = _Sampling(self._run)
        try:
            sampling.thread.start()
        except RuntimeError as error:
            self._sampling = None
            self._tell_shortage(explained_shortage(error) or str(error))

    def _replace(self, sampling: _Sampling, hanging: _Reading) -> None:
        """Leave the thread that waits for memory to itself, and begin with another."""
        self._drop(hanging)
        hanging.process.source.reads.give_up()
        self.lost.append(sampling.thread)
        self._sampling = self._awaited = None
        self._start()

    def _run(self, sampling: _Sampling) -> None:
        wake_promptly()
        while not self._closed.is_set() and sampling is self._sampling:
            self._has_any.wait()
            began_ns = time.thread_time_ns()
            with self._lock:
                processes = list(self._processes.items())
            for pid, process in self._drawn(processes):
                if sampling is not self._sampling:
                    return  # another one has taken its place meanwhile
                sampling.reading = _Reading(pid, process)
                self._sample(sampling, sampling.reading)
                sampling.reading = None
            cost_ns = time.thread_time_ns() - began_ns
            self.cpu_ns += cost_ns
            self._cost_ns += (min(cost_ns, _JUMP * self._cost_ns) - self._cost_ns) / _SMOOTHING
            mean_ns = max(_LEAST_GAP_NS, self._cost_ns / self._cpu_share)
            self._closed.wait(mean_ns * self._random.uniform(0.5, 1.5) / 1e9)

    def _give_up(self, reading: _Reading, error: Exception) -> None:
        shortage = explained_shortage(error)
        if shortage is None:
            _log.error(
                "the holders of process %d are not sampled any more", reading.pid, exc_info=error
            )
            self._drop(reading)
        else:
            self._tell_shortage(shortage)

    def _tell_shortage(self, shortage: GilscopeError | str) -> None:
        # It may pass, and the next sample stands for this one's time as well.
        if not self._has_told_shortage:
            self._has_told_shortage = True
            _log.warning("holders are sampled less often: %s", shortage)

    def _drop(self, reading: _Reading) -> None:
        """Forget the process of *reading*, unless another one has its number by now."""
        with self._lock:
            if self._processes.get(reading.pid) is not reading.process:
                return
        self.drop(reading.pid)

    def _drawn(self, processes: list[tuple[int, _Process]]) -> list[tuple[int, _Process]]:
        if len(processes) <= _MOST_AT_ONCE:
            return processes
        return self._random.sample(processes, _MOST_AT_ONCE)

    def _sample(self, sampling: _Sampling, reading: _Reading) -> None:
        process = reading.process
        gap_ns = time.monotonic_ns() - process.last_ns
        try:
            found = [_parts(process.source, cond, gap_ns) for cond in process.source.conds()]
        except OSError:
            # It has ended, or its memory does not answer: what is known of it stays.
            return
        except Exception as error:  # noqa: BLE001 - whatever fails, the agent continues
            self._give_up(reading, error)
            return
        with self._lock:
            if sampling is not self._sampling:
                return
            process.last_ns += gap_ns
            if not found or gap_ns > _LONGEST_GAP_NS:
                return
            process.samples += 1
            process.sampled_ns += gap_ns
            for part in itertools.chain.from_iterable(found):
                _credit(process.held, _bounded(process.states, part))
            pending = map(process.source.states.pending, process.source.conds())
            process.pending = _held_by(process.source, filter(None, pending))


def _parts(source: HolderSource, cond: int, gap_ns: int) -> list[HeldBy]:
    """Return what holders of *cond* did in the last *gap_ns*; raises OSError."""
    sample = source.holders.sample(cond)
    if sample is None:
        return _held_by(source, source.states.forget(cond))
    return _held_by(source, source.states.parts(cond, sample, gap_ns, source.waiting(cond)))


def _held_by(source: HolderSource, parts: Iterable[Part]) -> list[HeldBy]:
    return [
        HeldBy(source.shortened(each.sample.stack), each.ns, each.state, each.ns * each.waiting)
        for each in parts
    ]


def _bounded(states: set[HoldState], part: HeldBy) -> HeldBy:
    if part.state not in states:
        if len(states) >= _MOST_DETAILS:
            short = replace(part.state, calls=())
            return replace(part, state=short if short in states else HoldState(short.state))
        states.add(part.state)
    return part


def _credit(held: _Held, part: HeldBy) -> None:
    place = (part.holder, part.state)
    if place not in held and len(held) >= _MOST_STACKS:
        place = (_UNKNOWN, HoldState(part.state.state))
    held_ns, waited_ns = held.get(place, (0, 0))
    held[place] = (held_ns + part.held_ns, waited_ns + part.waited_ns)
