"""Traces the transactions of processes: attaches the probes and says what they have counted."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import GilscopeError, NotPython
from gilscope.model.transactions import Library, StmObservation
from gilscope.process.access import answering
from gilscope.process.breakpoints import addresses_of
from gilscope.process.memory import ProcessMemory
from gilscope.process.pidfd import open_pidfd
from gilscope.process.reads import ProcessReads
from gilscope.process.view import ProcessView
from gilscope.process.watch import ProcessWatch
from gilscope.text.units import NS_PER_S
from gilscope.transactions.plan import StmPlan
from gilscope.transactions.probe import StmProbe
from gilscope.transactions.process import AttachedProgram
from gilscope.transactions.target import StmTarget, inspect_stm
from gilscope.transactions.totals import RawStm
from gilscope.transactions.window import StmWindow
from gilscope.transactions.window_policy import StmWindows
from gilscope.transactions.window_thread import WindowThread

__all__ = ["TransactionAccount"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0


class TransactionAccount:
    """The processes whose transactions are traced. Any thread may call its methods."""

    def __init__(
        self,
        load: Callable[[], StmProbe] = StmProbe,
        *,
        keep_threads: bool = True,
        plan: StmPlan | None = None,
        watch: ProcessWatch | None = None,
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        With *keep_threads* dead threads stay listed; without, a process that runs for ever takes
        no more memory. *plan* says how closely; by default all the time. *watch* may be shared
        with others.
        """
        self._load = load
        self._keep_threads = keep_threads
        self._probe: StmProbe | None = None
        self._windows = StmWindows(plan or StmPlan())
        self._window_thread: WindowThread | None = None
        self._traced: dict[int, AttachedProgram] = {}
        self._closing = contextlib.ExitStack()
        self._watch = self._closing.enter_context(ProcessWatch()) if watch is None else watch
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._known_losses = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if not traced.ended)

    @property
    def traps(self) -> int:
        """How often any process has run into a probe so far."""
        with self._lock:
            return self._windows.traps

    def find(
        self, view: ProcessView, libraries: Collection[Library] = tuple(Library)
    ) -> StmTarget | None:
        """Return how to trace the process of *view*, None where it has none of *libraries*.

        Raises as `inspect_stm` does, and MemoryUnanswered.
        """
        with answering(view.pid):
            return self._watch.reader.read(
                view.pid, lambda: inspect_stm(view, libraries), discard=_close
            )

    def attach(self, target: StmTarget, view: ProcessView) -> None:
        """Begin to trace *target*, which was found in *view*.

        Raises NotPython, NotPermitted, MemoryUnanswered or KernelOrBccMissing.
        """
        pid = target.process.pid
        with self._lock, answering(pid), contextlib.ExitStack() as undo:
            self._end(pid)
            self._windows.forget(pid)
            probe = self._loaded()
            try:
                # Both stay bound to the program that runs now: whatever comes after it has the
                # same pid, but is not reached through them.
                pidfd = open_pidfd(pid)
                undo.callback(os.close, pidfd)
                memory = undo.enter_context(ProcessMemory(pid))
                reads = ProcessReads(self._watch.reader, pid, memory)
                stepped = reads(lambda: target.stepped_programs(view, memory))
                window = self._window(probe, target, stepped)
                undo.callback(probe.forget, pid)
                undo.callback(probe.detach, pid)
                undo.callback(lambda: probe.await_closing(pid, window.close()))
                self._windows.begin(pid, pidfd, target, window)
                undo.callback(self._windows.forget, pid)
                undo.callback(self._windows.end, pid)
                # The memory is that of the program that runs now; the target was found before.
                event = reads(lambda: target.event_function(memory))
            except (FileNotFoundError, ProcessLookupError) as error:
                raise NotPython(f"process {pid} ended while it was being attached") from error
            if event != target.sites.event_function or not view.still_same():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program, or beginning to log: try again.",
                )
            self._let_go(pid)
            self._traced[pid] = AttachedProgram(
                pid=pid,
                pidfd=pidfd,
                memory=memory,
                since_ns=time.monotonic_ns(),
                reads=reads,
                breakpoints=addresses_of(
                    target.file.mapping,
                    view.mappings,
                    [hook.offset for hook in target.sites.hooks],
                ),
                target=target,
                window=window,
                places=target.places(),
            )
            self._watch.add(pidfd, pid)
            undo.pop_all()
        if self._window_thread is not None:
            self._window_thread.wake()

    def runs_the_same(self, pid: int) -> bool:
        """Return whether *pid* is traced and still runs the program that was attached."""
        with self._lock:
            traced = self._traced.get(pid)
            return traced is not None and not traced.ended and traced.runs_the_same()

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._end(pid)
            if pid in self._traced:
                self._let_go(pid)
                self._forget(pid)

    def drop_ended(self, kept_s: float, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended *kept_s* ago or earlier.

        One that is *alive* may be attached to again, whatever has become of its probes.
        """
        del alive
        now_ns = time.monotonic_ns()
        with self._lock:
            for pid, traced in list(self._traced.items()):
                if traced.ended_ns is not None and now_ns - traced.ended_ns >= kept_s * NS_PER_S:
                    self._let_go(pid)
                    self._forget(pid)

    def tick(self) -> list[int]:
        """Look after all processes; return those to be attached to anew, as they log now.

        To be called a few times a second. Of those that have replaced their program there is no
        notice.
        """
        with self._lock:
            begun = []
            for pid in self._watch.ended() & self._traced.keys():
                self._end(pid)
            losses = 0 if self._probe is None else self._probe.keeper_losses
            for traced in self._traced.values():
                if traced.ended:
                    continue
                if traced.is_over():
                    self._end(traced.pid)
                    if traced.has_begun_to_log:
                        begun.append(traced.pid)
                if losses != self._known_losses and not traced.ended:
                    traced.invalid = "the process that held its probes has ended"
                    self._end(traced.pid)
            self._known_losses = losses
            if self._probe is not None:
                self._hear(self._probe)
            if time.monotonic() >= self._settle_at_s:
                # Dead threads leave the tables, also with no scrape.
                self.observe()
        return begun

    def observe(self) -> list[StmObservation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            probe = self._probe
            if probe is None:
                return []
            self._settle_at_s = time.monotonic() + _SETTLE_S
            for traced in self._traced.values():
                if traced.has_lost_probes():
                    self._end(traced.pid)
            try:
                raw = probe.read()
            except Exception:  # noqa: BLE001 - what else is measured has figures of its own
                _log.exception("could not read what the probes of transactions have counted")
                return [traced.unread() for traced in self._traced.values()]
            return [
                self._observation(probe, traced, raw[pid])
                for pid, traced in self._traced.items()
                if pid in raw
            ]

    def close(self) -> None:
        """Take the probes out of all processes."""
        if self._window_thread is not None:
            self._window_thread.close()
        with self._lock:
            for pid in list(self._traced):
                self._end(pid)
                self._let_go(pid)
            if self._probe is not None:
                self._probe.close()
                self._probe = None
        self._closing.close()

    def _loaded(self) -> StmProbe:
        if self._probe is None:
            self._probe = self._load()
            if self._windows.has_budget:
                self._window_thread = WindowThread(
                    self._probe.notice_ring, self._step, lambda: self._windows.due_ns
                )
        return self._probe

    def _step(self) -> None:
        """Open and end the windows that are due."""
        with self._lock:
            if self._probe is not None:
                self._probe.beat()
                self._hear(self._probe)
                self._windows.step()

    def _hear(self, probe: StmProbe) -> None:
        """Take what the probes have noticed: windows that have ended, and children."""
        for pid in probe.take_notices().forked:
            traced = self._traced.get(pid)
            if traced is None or not traced.window.is_open:
                continue
            try:
                # The child has the breakpoints in its copy of the memory, and is not traced.
                probe.leave_to_the_attached(traced.window.hooks)
            except (GilscopeError, OSError) as error:
                _log.debug("forks of process %d keep its probes for now: %s", pid, error)

    def _window(self, probe: StmProbe, target: StmTarget, stepped: set[str]) -> StmWindow:
        hooks = [Hook(hook.program, target.file.path, hook.offset) for hook in target.sites.hooks]
        return probe.window(
            target.process.pid,
            hooks,
            events=target.events,
            stepped=stepped,
        )

    def _observation(self, probe: StmProbe, traced: AttachedProgram, raw: RawStm) -> StmObservation:
        for tid in traced.take_dead(raw, is_listed=self._keep_threads):
            probe.forget_thread(tid)
        return traced.observation(raw, self._windows.cost(traced.pid, is_alive=not traced.ended))

    def _forget(self, pid: int) -> None:
        self._windows.forget(pid)
        if self._probe is not None:
            self._probe.forget(pid)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        traced.ended_ns = time.monotonic_ns()
        self._watch.remove(traced.pidfd)
        self._windows.end(pid)
        if self._probe is not None:
            self._probe.await_closing(pid, traced.window.close())
            self._probe.detach(pid)
        traced.close()

    def _let_go(self, pid: int) -> None:
        """Close the file of *pid*, which names are found in after its end, too."""
        traced = self._traced.pop(pid, None)
        if traced is not None:
            traced.target.close()


def _close(target: StmTarget | None) -> None:
    if target is not None:
        target.close()
