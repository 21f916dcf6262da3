"""Traces the locks of processes: attaches the probes and says what they have counted."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.errors import GilscopeError, NotPython
from gilscope.locks.cost import LockCost
from gilscope.locks.probe import LockProbe
from gilscope.locks.process import AttachedLocks
from gilscope.locks.target import LockTarget, inspect_locks
from gilscope.locks.totals import RawLocks
from gilscope.model.gil import Process
from gilscope.model.locks import LockObservation, LockProcess
from gilscope.process.access import while_alive
from gilscope.process.breakpoints import addresses_of
from gilscope.process.memory import ProcessMemory
from gilscope.process.pidfd import open_pidfd
from gilscope.process.reads import ProcessReads
from gilscope.process.view import ProcessView, view_of
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.unwind_info import frame_walk
from gilscope.runtimes.cpython.runtime import runtime_of
from gilscope.text.units import NS_PER_S

__all__ = ["LockAccount"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0


class LockAccount:
    """The processes whose locks are traced. Any thread may call its methods."""

    def __init__(
        self,
        load: Callable[[], LockProbe] = LockProbe,
        *,
        costs: TrapCosts = ASSUMED,
        watch: ProcessWatch | None = None,
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        *costs* is what a trap costs on this machine. *watch* may be shared with others.
        """
        self._load = load
        self._costs = costs
        self._probe: LockProbe | None = None
        self._traced: dict[int, AttachedLocks] = {}
        self._closing = contextlib.ExitStack()
        self._watch = self._closing.enter_context(ProcessWatch()) if watch is None else watch
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._traps = 0
        self._known_losses = 0
        self._refused: dict[int, LockObservation] = {}
        """Why locks are not traced in processes whose GIL is."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if not traced.ended)

    @property
    def traps(self) -> int:
        """How often any process had run into a probe when they were last read."""
        with self._lock:
            return self._traps

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
        with contextlib.ExitStack() as closing:
            closing.callback(target.close)
            self._attach(target, view)
            closing.pop_all()
        return target.process

    def _attach(self, target: LockTarget, view: ProcessView) -> None:
        pid, build = view.pid, target.build
        with self._lock, while_alive(pid), contextlib.ExitStack() as undo:
            self._end(pid)
            self._let_go(pid)
            probe = self._loaded()
            pidfd = open_pidfd(pid)
            undo.callback(os.close, pidfd)
            memory = undo.enter_context(ProcessMemory(pid))
            reads = ProcessReads(self._watch.reader, pid, memory)
            runtime = runtime_of(memory, build.interpreter, build.load_bias)
            path = build.file.path
            hooks = [Hook(program, path, offset) for program, offset in target.points]
            probe.attach(pid, target.record(), frame_walk(pid, runtime), hooks)
            undo.callback(probe.forget, pid)
            undo.callback(probe.detach, pid)
            if not view.still_same():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program: try again.",
                )
            self._traced[pid] = AttachedLocks(
                pid=pid,
                pidfd=pidfd,
                memory=memory,
                since_ns=time.monotonic_ns(),
                reads=reads,
                breakpoints=addresses_of(
                    build.file.mapping, view.mappings, [hook.offset for hook in hooks]
                ),
                target=target,
                code=CodeReader(runtime),
                cost=LockCost(pid, self._costs.contention_ns),
            )
            self._watch.add(pidfd, pid)
            undo.pop_all()

    def runs_the_same(self, pid: int) -> bool:
        """Return whether *pid* is traced and still runs the program that was attached."""
        with self._lock:
            traced = self._traced.get(pid)
            return traced is not None and not traced.ended and traced.runs_the_same()

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._end(pid)
            self._let_go(pid)

    def drop_ended(self, kept_s: float, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended *kept_s* ago or earlier."""
        del alive
        now_ns = time.monotonic_ns()
        with self._lock:
            for pid, traced in list(self._traced.items()):
                if traced.ended_ns is not None and now_ns - traced.ended_ns >= kept_s * NS_PER_S:
                    self._let_go(pid)

    def tick(self) -> list[int]:
        """Look after all processes; to be called a few times a second. Returns an empty list.

        Who accounts for GILs is told of programs that were replaced.
        """
        with self._lock:
            probe = self._probe
            if probe is None:
                return []
            for pid in self._watch.ended() & self._traced.keys():
                self._end(pid)
            losses = probe.keeper_losses
            for traced in self._traced.values():
                if traced.ended:
                    continue
                traced.learn_stacks(probe)
                if traced.is_over():
                    self._end(traced.pid)
                elif losses != self._known_losses:
                    traced.invalid = "the process that held its probes has ended"
                    self._end(traced.pid)
            self._known_losses = losses
            self._leave_children(probe)
            if time.monotonic() >= self._settle_at_s:
                self.observe()
        return []

    def observe(self) -> list[LockObservation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            probe = self._probe
            if probe is None:
                return list(self._refused.values())
            self._settle_at_s = time.monotonic() + _SETTLE_S
            for traced in self._traced.values():
                if traced.has_lost_probes():
                    self._end(traced.pid)
                if not traced.ended:
                    traced.learn_stacks(probe)
            raw = probe.read()
            seen = [
                self._observation(probe, traced, raw[pid]) for pid, traced in self._traced.items()
            ]
            self._traps = sum(each.totals.traps for each in seen if each.totals is not None)
            return [*seen, *self._refused.values()]

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            for pid in list(self._traced):
                self._end(pid)
                self._let_go(pid)
            if self._probe is not None:
                self._probe.close()
                self._probe = None
        self._closing.close()

    def _loaded(self) -> LockProbe:
        if self._probe is None:
            self._probe = self._load()
        return self._probe

    def _observation(
        self, probe: LockProbe, traced: AttachedLocks, raw: RawLocks
    ) -> LockObservation:
        ended, keys = traced.keep_dead(raw)
        probe.forget_waits(keys)
        for tid in ended:
            probe.forget_thread(tid)
        return traced.observation(raw)

    def _leave_children(self, probe: LockProbe) -> None:
        for pid in probe.take_forked():
            traced = self._traced.get(pid)
            if traced is None or traced.ended:
                continue
            hooks = [
                Hook(program, traced.target.build.file.path, offset)
                for program, offset in traced.target.points
            ]
            try:
                # The child has the breakpoints in its copy of the memory, and is not traced.
                probe.leave_to_the_attached(hooks)
            except (GilscopeError, OSError) as error:
                _log.debug("forks of process %d keep its probes for now: %s", pid, error)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        traced.ended_ns = time.monotonic_ns()
        self._watch.remove(traced.pidfd)
        if self._probe is not None:
            with contextlib.suppress(OSError):
                traced.learn_stacks(self._probe)
            self._probe.detach(pid)
        traced.close()

    def _let_go(self, pid: int) -> None:
        """Forget *pid*, and close its file."""
        self._refused.pop(pid, None)
        traced = self._traced.pop(pid, None)
        if traced is not None:
            traced.target.close()
        if self._probe is not None:
            self._probe.forget(pid)
