"""Keeps the processes that are observed in windows: their probes come, go and are looked after."""

import contextlib
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from gilscope.errors import GilscopeError, NotPython
from gilscope.process.attachment import Retention
from gilscope.process.memory import ProcessMemory
from gilscope.process.pidfd import open_pidfd
from gilscope.process.reads import ProcessReads
from gilscope.process.watch import ProcessWatch
from gilscope.values import dataclass
from gilscope.windows.attachment import WindowedAttachment
from gilscope.windows.policy import Windows
from gilscope.windows.probe import WindowedProbe
from gilscope.windows.thread import WindowThread
from gilscope.windows.window import ProbeWindow

__all__ = ["Opened", "WindowedAccount"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0

_Probe = TypeVar("_Probe", bound=WindowedProbe)
_Attached = TypeVar("_Attached", bound=WindowedAttachment)


@dataclass(frozen=True, slots=True)
class Opened(Generic[_Probe]):
    """A process that is being attached to.

    Its *pidfd* and its *memory* stay bound to the program that runs now: whatever comes after it
    has the same number, but is not reached through them.
    """

    probe: _Probe
    pidfd: int
    memory: ProcessMemory
    reads: ProcessReads
    undo: contextlib.ExitStack
    """What is done if it cannot be attached to."""


class WindowedAccount(ABC, Generic[_Probe, _Attached]):
    """The processes that are traced. Any thread may call its methods."""

    def __init__(
        self, load: Callable[[], _Probe], windows: Windows, name: str, watch: ProcessWatch | None
    ) -> None:
        """Trace with the probe that *load* makes when the first process is attached.

        A thread called *name* opens and ends *windows*. *watch* may be shared with others.
        """
        self._load = load
        self._windows = windows
        self._name = name
        self._probe: _Probe | None = None
        self._window_thread: WindowThread | None = None
        self._traced: dict[int, _Attached] = {}
        self._closing = contextlib.ExitStack()
        self._watch = self._closing.enter_context(ProcessWatch()) if watch is None else watch
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._known_losses = 0
        self.forks = 0
        """How often any process has forked, as far as its probes have been heard."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if not traced.ended)

    def traces(self, pid: int) -> bool:
        """Return whether *pid* is traced and has not ended."""
        with self._lock:
            traced = self._traced.get(pid)
            return traced is not None and not traced.ended

    @property
    def traps(self) -> int:
        """How often any process has run into a probe so far."""
        with self._lock:
            return self._windows.traps

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

    def drop_ended(self, retention: Retention, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended, as *retention* says.

        One that is *alive* may be attached to again, whatever has become of its probes.
        """
        del alive
        with self._lock:
            ended_ns = {
                pid: traced.ended_ns
                for pid, traced in self._traced.items()
                if traced.ended_ns is not None
            }
            for pid in retention.over(ended_ns, time.monotonic_ns()):
                self._let_go(pid)
                self._forget(pid)

    def tick(self) -> list[int]:
        """Look after all processes; return those to be attached to anew, of which more is seen so.

        To be called a few times a second. Of those that have replaced their program there is no
        notice.
        """
        with self._lock:
            anew = []
            for pid in self._watch.ended() & self._traced.keys():
                self._end(pid)
            # What cannot be read is told by whoever observes next.
            with contextlib.suppress(OSError):
                self._learn()
            probe = self._probe
            losses = 0 if probe is None else probe.keeper_losses
            for traced in self._traced.values():
                if traced.ended:
                    continue
                if traced.is_over():
                    self._end(traced.pid)
                    if traced.is_to_be_attached_anew:
                        anew.append(traced.pid)
                if losses != self._known_losses and not traced.ended:
                    traced.invalid = "the process that held its probes has ended"
                    self._end(traced.pid)
            self._known_losses = losses
            if probe is not None:
                self._hear(probe)
            self._windows.note_cost()
            if time.monotonic() >= self._settle_at_s:
                # Dead threads leave the tables, also with no scrape.
                self._settle()
        return anew

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

    @abstractmethod
    def _settle(self) -> None:
        """Count what has ended, so that it leaves the tables."""

    def _learn(self) -> None:
        """Read what can be read of the programs only while they are there; raises OSError."""

    def _begin_to_observe(self) -> _Probe | None:
        """Return the probe whose tables are to be read; None: no process was attached yet."""
        if self._probe is None:
            return None
        self._settle_at_s = time.monotonic() + _SETTLE_S
        for traced in self._traced.values():
            if traced.has_lost_probes():
                self._end(traced.pid)
        return self._probe

    @contextlib.contextmanager
    def _opened(self, pid: int) -> Iterator[Opened[_Probe]]:
        """Have *pid* open while it is being attached to, and afterwards if that succeeds.

        Raises NotPython where it ends meanwhile, and KernelOrBccMissing.
        """
        self._end(pid)
        self._windows.forget(pid)
        with contextlib.ExitStack() as undo:
            probe = self._loaded()
            try:
                pidfd = open_pidfd(pid)
                undo.callback(os.close, pidfd)
                memory = undo.enter_context(ProcessMemory(pid))
                yield Opened(
                    probe, pidfd, memory, ProcessReads(self._watch.reader, pid, memory), undo
                )
            except (FileNotFoundError, ProcessLookupError) as error:
                raise NotPython(f"process {pid} ended while it was being attached") from error
            undo.pop_all()

    def _put_in(self, pid: int, opened: Opened[_Probe], place: object, window: ProbeWindow) -> None:
        """Put the probes of *window* into *pid*; *place* is as in `Windows.begin`."""
        probe, undo = opened.probe, opened.undo
        undo.callback(probe.forget, pid)
        undo.callback(probe.detach, pid)
        undo.callback(lambda: probe.await_closing(pid, window.close()))
        self._windows.begin(pid, opened.pidfd, place, window)
        undo.callback(self._windows.forget, pid)
        undo.callback(self._windows.end, pid)

    def _keep(self, traced: _Attached) -> None:
        """Trace it from now on."""
        self._let_go(traced.pid)
        self._traced[traced.pid] = traced
        self._watch.add(traced.pidfd, traced.pid)

    def _wake_windows(self) -> None:
        """Have what opens windows check what is due. Nobody must hold the lock."""
        if self._window_thread is not None:
            self._window_thread.wake()

    def _loaded(self) -> _Probe:
        if self._probe is None:
            self._probe = self._load()
            if self._windows.has_budget:
                self._window_thread = WindowThread(
                    self._name,
                    self._probe.notice_ring,
                    self._step,
                    lambda: self._windows.due_ns,
                )
        return self._probe

    def _step(self) -> None:
        """Open and end the windows that are due."""
        with self._lock:
            if self._probe is not None:
                self._probe.beat()
                self._hear(self._probe)
                self._windows.step()

    def _hear(self, probe: _Probe) -> None:
        """Take what the probes have noticed: windows that have ended, and children."""
        forked = probe.take_notices().forked
        if forked:
            self.forks += len(forked)
            # Who looks for new processes is to hear of it now.
            self._watch.wake()
        for pid in forked:
            traced = self._traced.get(pid)
            if traced is None or not traced.window.is_open:
                continue
            try:
                # The child has the breakpoints in its copy of the memory, and is not traced.
                probe.leave_to_the_attached(traced.window.hooks)
            except (GilscopeError, OSError) as error:
                _log.debug("forks of process %d keep its probes for now: %s", pid, error)

    def _forget(self, pid: int) -> None:
        self._windows.forget(pid)
        if self._probe is not None:
            self._probe.forget(pid)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        with contextlib.suppress(OSError):
            self._learn()
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
            traced.its_target.close()
