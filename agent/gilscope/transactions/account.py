"""Traces the transactions of processes: attaches the probes and says what they have counted."""

import logging
import time
from collections.abc import Callable, Collection

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.budget.prices import Prices
from gilscope.errors import NotPython
from gilscope.model.transactions import Library, StmObservation
from gilscope.process.access import answering
from gilscope.process.breakpoints import addresses_of
from gilscope.process.view import ProcessView
from gilscope.process.watch import ProcessWatch
from gilscope.transactions.probe import StmProbe
from gilscope.transactions.process import AttachedProgram
from gilscope.transactions.target import StmTarget, inspect_stm
from gilscope.transactions.totals import RawStm
from gilscope.windows.account import WindowedAccount
from gilscope.windows.plan import WindowPlan
from gilscope.windows.policy import Windows
from gilscope.windows.stepped import stepped_programs

__all__ = ["TransactionAccount"]

_log = logging.getLogger(__name__)


class TransactionAccount(WindowedAccount[StmProbe, AttachedProgram]):
    """The processes whose transactions are traced. Any thread may call its methods."""

    def __init__(
        self,
        load: Callable[[], StmProbe] = StmProbe,
        *,
        keep_threads: bool = True,
        plan: WindowPlan | None = None,
        watch: ProcessWatch | None = None,
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        With *keep_threads* dead threads stay listed; without, a process that runs for ever takes
        no more memory. *plan* says how closely; by default all the time. *watch* may be shared
        with others.
        """
        windows = Windows(plan or WindowPlan(), "transactions", Prices.full_ns)
        super().__init__(load, windows, "gilscope-stm", watch)
        self._keep_threads = keep_threads

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
        hooks = [Hook(hook.program, target.file.path, hook.offset) for hook in target.sites.hooks]
        with self._lock, answering(pid), self._opened(pid) as opened:
            memory, reads = opened.memory, opened.reads
            stepped = reads(lambda: stepped_programs(hooks, target.file, view, memory))
            window = opened.probe.window(pid, hooks, events=target.events, stepped=stepped)
            self._put_in(pid, opened, target.place, window)
            # The memory is that of the program that runs now; the target was found before.
            event = reads(lambda: target.event_function(memory))
            if event != target.sites.event_function or not view.still_same():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program, or beginning to log: try again.",
                )
            self._keep(
                AttachedProgram(
                    pid=pid,
                    pidfd=opened.pidfd,
                    memory=memory,
                    since_ns=time.monotonic_ns(),
                    reads=reads,
                    breakpoints=addresses_of(
                        target.file.mapping, view.mappings, [hook.offset for hook in hooks]
                    ),
                    target=target,
                    window=window,
                    places=target.places(),
                )
            )
        self._wake_windows()

    def observe(self) -> list[StmObservation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            probe = self._begin_to_observe()
            if probe is None:
                return []
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

    def _settle(self) -> None:
        self.observe()

    def _observation(self, probe: StmProbe, traced: AttachedProgram, raw: RawStm) -> StmObservation:
        for tid in traced.take_dead(raw, is_listed=self._keep_threads):
            probe.forget_thread(tid)
        return traced.observation(raw, self._windows.cost(traced.pid, is_alive=not traced.ended))


def _close(target: StmTarget | None) -> None:
    if target is not None:
        target.close()
