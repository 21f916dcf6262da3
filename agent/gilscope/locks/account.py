"""Traces the locks of processes: attaches the probes and says what they have counted."""

import logging
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.budget.prices import Prices
from gilscope.errors import GilscopeError, NotPython
from gilscope.locks.probe import LockProbe
from gilscope.locks.process import AttachedLocks
from gilscope.locks.target import LockTarget, inspect_locks
from gilscope.locks.timeline import LockTimelines
from gilscope.locks.totals import RawLocks
from gilscope.model.gil import Process
from gilscope.model.locks import LockMoment, LockObservation, LockProcess, LockTimeline
from gilscope.model.stack import Stack
from gilscope.process.access import while_alive
from gilscope.process.attachment import Retention
from gilscope.process.breakpoints import addresses_of
from gilscope.process.view import ProcessView, view_of
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.unwind_info import frame_walk
from gilscope.runtimes.cpython.runtime import runtime_of
from gilscope.text.units import NS_PER_S
from gilscope.windows.account import WindowedAccount
from gilscope.windows.plan import WindowPlan
from gilscope.windows.policy import Windows
from gilscope.windows.stepped import stepped_programs

__all__ = ["LockAccount"]

_log = logging.getLogger(__name__)


class LockAccount(WindowedAccount[LockProbe, AttachedLocks]):
    """The processes whose locks are traced. Any thread may call its methods."""

    def __init__(
        self,
        load: Callable[[], LockProbe] = LockProbe,
        *,
        keep_threads: bool = True,
        plan: WindowPlan | None = None,
        watch: ProcessWatch | None = None,
        moments_for_s: int | None = None,
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        With *keep_threads* dead threads stay listed; without, what they have waited for is added
        up, and a process that runs for ever takes no more memory. *plan* says how closely; by
        default all the time. *watch* may be shared with others. The worst moment is that of the
        last *moments_for_s*; None: of all the time.
        """
        windows = Windows(plan or WindowPlan(), "waits for locks", Prices.contention_ns)
        super().__init__(load, windows, "gilscope-locks", watch)
        self._keep_threads = keep_threads
        self._moments_for_ns = None if moments_for_s is None else moments_for_s * NS_PER_S
        self._timelines: LockTimelines | None = None
        """None: the probe was not asked to send waits one by one, or there is none yet."""
        self._read: dict[int, RawLocks] = {}
        """What the tables held of each process when they were read last."""
        self._refused: dict[int, LockObservation] = {}
        """Why locks are not traced in processes whose GIL is."""
        self._gone_s: dict[int, float] = {}
        """When some of these were seen to have gone, on the monotonic clock."""

    def attach_beside(self, process: Process) -> None:
        """Begin to trace the locks of *process*, whose GIL is traced; or say why that cannot be."""
        try:
            self.attach(process.pid)
        except GilscopeError as refusal:
            nobody = LockProcess(process.pid, process.name, process.python, "", process.build_id)
            with self._lock:
                self._refused[process.pid] = LockObservation(
                    nobody, time.monotonic_ns(), None, str(refusal)
                )

    def attach(self, pid: int) -> LockProcess:
        """Begin to trace *pid*; raises what `inspect_locks` raises, and KernelOrBccMissing."""
        with self._lock:
            if self.runs_the_same(pid):
                return self._traced[pid].target.process
        with while_alive(pid):
            view = view_of(pid)
            target = self._watch.reader.read(pid, lambda: inspect_locks(view))
        try:
            self._attach(target, view)
        except BaseException:
            target.close()
            raise
        self._wake_windows()
        return target.process

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._refused.pop(pid, None)
            super().drop(pid)

    def drop_ended(self, retention: Retention, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended, as *retention* says.

        Of one that is not *alive* it is forgotten, too, why it was not traced.
        """
        super().drop_ended(retention, alive)
        now_s = time.monotonic()
        with self._lock:
            gone_s = {pid: self._gone_s.get(pid, now_s) for pid in self._refused.keys() - alive}
            kept_s = retention.kept_s
            for pid in [pid for pid, since_s in gone_s.items() if now_s - since_s >= kept_s]:
                del gone_s[pid], self._refused[pid]
            self._gone_s = gone_s

    def observe(self) -> list[LockObservation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            probe = self._begin_to_observe()
            if probe is None:
                return list(self._refused.values())
            try:
                self._learn()
                raw = probe.read()
                # What the tables have was sent, too.
                self._take_spans(probe)
            except Exception:  # noqa: BLE001 - what else is measured has figures of its own
                _log.exception("could not read what the probes on locks have counted")
                unread = [traced.unread() for traced in self._traced.values()]
                return [*unread, *self._refused.values()]
            self._read = {pid: raw[pid] for pid in self._traced}
            seen = [
                self._observation(probe, traced, raw[pid]) for pid, traced in self._traced.items()
            ]
            return [*seen, *self._refused.values()]

    def timeline(self, pid: int) -> LockTimeline | None:
        """Return what *pid* has waited for one by one, as of the last `observe`.

        None where the probe was not asked to send all of that, or nothing is known of the process.
        """
        with self._lock:
            traced, raw = self._traced.get(pid), self._read.get(pid)
            sends_all = self._probe is not None and self._probe.sends_all_spans
            if traced is None or raw is None or self._timelines is None or not sends_all:
                return None
            return self._timelines.timeline(pid, raw, has_flights=traced.has_flights)

    def moment(self, pid: int, since_ns: int = 0) -> LockMoment | None:
        """Return when threads of *pid* have waited most for locks, as of the last `observe`.

        Of what has ended since *since_ns*. None where the probe was not asked to send what it
        takes, or nobody has waited.
        """
        with self._lock:
            traced, raw = self._traced.get(pid), self._read.get(pid)
            if traced is None or raw is None or self._timelines is None:
                return None
            return self._timelines.moment(pid, raw, since_ns, has_flights=traced.has_flights)

    def _stacks_of(self, pid: int) -> Mapping[int, Stack]:
        traced = self._traced.get(pid)
        return {} if traced is None else traced.stacks

    def _attach(self, target: LockTarget, view: ProcessView) -> None:
        pid, build = view.pid, target.build
        hooks = [Hook(program, build.file.path, offset) for program, offset in target.points]
        with self._lock, while_alive(pid), self._opened(pid) as opened:
            # What another program, or an earlier attachment, has waited for is told no more.
            self._take_spans(opened.probe)
            self._forget_spans(pid)
            memory, reads = opened.memory, opened.reads
            runtime = runtime_of(memory, build.interpreter, build.load_bias)
            window = opened.probe.window(
                pid,
                hooks,
                target=target.record(),
                python=frame_walk(pid, runtime),
                stepped=reads(lambda: stepped_programs(hooks, build.file, view, memory)),
            )
            self._put_in(pid, opened, build.build_id or build.file.identity, window)
            if not view.still_same():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program: try again.",
                )
            self._keep(
                AttachedLocks(
                    pid=pid,
                    pidfd=opened.pidfd,
                    memory=memory,
                    since_ns=time.monotonic_ns(),
                    reads=reads,
                    breakpoints=addresses_of(
                        build.file.mapping, view.mappings, [hook.offset for hook in hooks]
                    ),
                    target=target,
                    window=window,
                    code=CodeReader(runtime),
                )
            )

    def _forget(self, pid: int) -> None:
        self._forget_spans(pid)
        super()._forget(pid)

    def _learn(self) -> None:
        if self._probe is not None:
            self._take_spans(self._probe)
        alive = {pid: traced for pid, traced in self._traced.items() if not traced.ended}
        if self._probe is None or not alive:
            return
        known = {pid: traced.stacks.keys() for pid, traced in alive.items()}
        for pid, places in self._probe.new_stacks(known).items():
            alive[pid].learn(places)

    def _forget_spans(self, pid: int) -> None:
        self._read.pop(pid, None)
        if self._timelines is not None:
            self._timelines.forget(pid)

    def _take_spans(self, probe: LockProbe) -> None:
        if not probe.sends_spans:
            return
        if self._timelines is None:
            self._timelines = LockTimelines(
                self._stacks_of, a_second=probe.spans_a_second, for_ns=self._moments_for_ns
            )
        for span in probe.spans():
            # An attachment that has failed may have left some.
            if span["tgid"] in self._traced:
                self._timelines.add(span)

    def _settle(self) -> None:
        self.observe()

    def _observation(
        self, probe: LockProbe, traced: AttachedLocks, raw: RawLocks
    ) -> LockObservation:
        ended, keys = traced.keep_dead(raw, is_listed=self._keep_threads)
        probe.forget_waits(keys)
        for tid in ended:
            probe.forget_thread(tid)
        return traced.observation(raw, self._windows.cost(traced.pid, is_alive=not traced.ended))
