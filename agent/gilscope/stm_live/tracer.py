"""Traces the transactions of processes: attaches the probes and says what they have counted."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gilscope import procfs
from gilscope.errors import NotPython
from gilscope.kernel.uprobes import Hook
from gilscope.procmem import ProcessMemory
from gilscope.stm_live.account import RawStm, busiest_first, thread_of, totals_of
from gilscope.stm_live.model import Method, StmObservation, StmThread
from gilscope.stm_live.probe import StmProbe
from gilscope.stm_live.target import StmTarget, inspect_stm

__all__ = ["StmTracer"]

_SETTLE_S = 5.0


@dataclass(slots=True)
class _Traced:
    target: StmTarget
    memory: ProcessMemory
    since_ns: int
    dead: list[StmThread] = field(default_factory=list)
    """The threads that have ended."""
    ended_s: float | None = None
    """On the monotonic clock; None: it is traced."""
    invalid: str = ""

    @property
    def sees_events(self) -> bool:
        return self.target.sites.event_function is not None


class StmTracer:
    """The processes whose transactions are traced. Any thread may call its methods."""

    def __init__(
        self, load: Callable[[], StmProbe] = StmProbe, *, keep_threads: bool = True
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        With *keep_threads* dead threads stay listed; without, a process that runs for ever takes
        no more memory.
        """
        self._load = load
        self._keep_threads = keep_threads
        self._probe: StmProbe | None = None
        self._traced: dict[int, _Traced] = {}
        self._lock = threading.RLock()
        self._settle_at_s = 0.0

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if traced.ended_s is None)

    def find(self, pid: int) -> StmTarget | None:
        """Return how to trace *pid*, None where it runs no transactions; see `inspect_stm`."""
        return inspect_stm(pid)

    def attach(self, target: StmTarget) -> None:
        """Begin to trace *target*; raises NotPython, NotPermitted or KernelOrBccMissing."""
        pid = target.process.pid
        with self._lock, contextlib.ExitStack() as undo:
            self._end(pid)
            if self._probe is None:
                self._probe = self._load()
            try:
                memory = undo.enter_context(ProcessMemory(pid))
                hooks = [
                    Hook(hook.program, target.file.path, hook.offset) for hook in target.sites.hooks
                ]
                has_all = target.process.method is Method.EVENTS
                self._probe.attach(pid, hooks, knows_events=has_all)
                undo.callback(self._probe.forget, pid)
                undo.callback(self._probe.detach, pid)
                # The memory is that of the program that runs now; the target was found before.
                event = target.event_function(memory)
            except (FileNotFoundError, ProcessLookupError) as error:
                raise NotPython(f"process {pid} ended while it was being attached") from error
            if event != target.sites.event_function or not target.file.is_still_there():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program, or beginning to log: try again.",
                )
            self._traced[pid] = _Traced(target, memory, time.monotonic_ns())
            undo.pop_all()

    def drop_ended(self, kept_s: float) -> None:
        """Forget what was counted of processes that have ended *kept_s* ago or earlier."""
        with self._lock:
            for pid, traced in list(self._traced.items()):
                ended_s = traced.ended_s
                if ended_s is not None and time.monotonic() - ended_s >= kept_s:
                    del self._traced[pid]
                    if self._probe is not None:
                        self._probe.forget(pid)

    def tick(self) -> None:
        """Look after all processes. To be called a few times a second."""
        with self._lock:
            for pid, traced in self._traced.items():
                if traced.ended_s is not None:
                    continue
                if procfs.is_alive(pid):
                    self._look_at(traced)
                else:
                    self._end(pid)
            if time.monotonic() >= self._settle_at_s:
                # Dead threads leave the tables, also if nobody asks.
                self.observe()

    def observe(self) -> list[StmObservation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            if self._probe is None:
                return []
            self._settle_at_s = time.monotonic() + _SETTLE_S
            raw = self._probe.read()
            return [
                self._observation(traced, raw[pid])
                for pid, traced in self._traced.items()
                if pid in raw
            ]

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            for pid in list(self._traced):
                self._end(pid)
            if self._probe is not None:
                self._probe.close()
                self._probe = None

    def _observation(self, traced: _Traced, raw: RawStm) -> StmObservation:
        return StmObservation(
            traced.target.process,
            traced.since_ns,
            totals_of(traced.target.process, raw, self._threads(traced, raw)),
            traced.invalid,
            traced.ended_s is not None,
        )

    def _threads(self, traced: _Traced, raw: RawStm) -> tuple[StmThread, ...]:
        records = dict(raw.threads)
        for tid, record in raw.threads.items():
            if not record["exited_ns"]:
                continue
            # Its record is final. It leaves the map, which never fills up so.
            del records[tid]
            if self._probe is not None:
                self._probe.forget_thread(tid)
            if self._keep_threads:
                traced.dead.append(thread_of(tid, record))
        alive = [thread_of(tid, record) for tid, record in records.items()]
        return busiest_first([*alive, *traced.dead])

    def _look_at(self, traced: _Traced) -> None:
        """Notice the end of the program, or of what the probes see."""
        try:
            traced.memory.read(traced.target.file.mapping.start, 1)
            event = traced.target.event_function(traced.memory)
        except OSError:
            self._end(traced.target.process.pid)
            return
        if event != traced.target.sites.event_function and traced.sees_events:
            traced.invalid = "the program has ended its log, which is where its events came from"
            self._end(traced.target.process.pid)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended_s is not None:
            return
        traced.ended_s = time.monotonic()
        if self._probe is not None:
            self._probe.detach(pid)
        traced.memory.close()
