"""Traces processes: attaches the probes, watches over them, and says what they have counted."""

import contextlib
import logging
import os
import select
import threading
import time
from random import Random

from gilscope import procfs
from gilscope.errors import GilscopeError, NotPermitted, NotPython
from gilscope.gil.account import RawProcess, RawTotals, has_exited, holders
from gilscope.gil.calibration import TrapCosts
from gilscope.gil.full_mode import CONTENTION, FullMode, ObservationPlan
from gilscope.gil.held_sampler import HeldSampler
from gilscope.gil.lock_memory import LockMemory
from gilscope.gil.probe import GilProbe, Notice, NoticeKind, ReturnSite
from gilscope.gil.return_sites import hook_for
from gilscope.gil.role_reader import RoleReader
from gilscope.gil.runtime import runtime_of
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.thread_finder import ThreadFinder
from gilscope.gil.traced import Traced
from gilscope.model import Mode, Observation
from gilscope.procmem import ProcessMemory
from gilscope.target import Target, inspect, locate, while_alive

__all__ = ["Tracer"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0
"""So often all maps are read even if nobody asks: dead threads leave them, checks are made."""


class Tracer:
    """The processes that are being traced. Its methods may be called from several threads."""

    def __init__(
        self,
        probe: GilProbe,
        cache: SiteCache,
        *,
        method: str | None = None,
        keep_threads: bool = True,
        plan: ObservationPlan = CONTENTION,
    ) -> None:
        """Trace with *probe*; *method* forces ``sites`` or ``libc``; *plan* says how closely.

        With *keep_threads* every dead thread stays listed by itself; without, the dead threads of
        one role are added up, so that a process that starts threads for ever takes no more memory.
        """
        self.probe = probe
        self.cache = cache
        self._method = method
        self._keep_threads = keep_threads
        self._traced: dict[int, Traced] = {}
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._full_mode = FullMode(probe, plan)
        # In full mode windows cover all the time, so nothing is left to be estimated.
        self._sampler = (
            None if plan.mode is Mode.FULL else HeldSampler(self._observed_ns, Random())  # noqa: S311
        )

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if not traced.ended)

    @property
    def ended_pids(self) -> tuple[int, ...]:
        """The processes that have ended, or whose probes were taken out, and are still listed."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if traced.ended)

    @property
    def untrusted_pids(self) -> tuple[int, ...]:
        """The processes of `ended_pids` whose probes failed a check; they may well be alive."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if traced.invalid)

    @property
    def sampling_cpu_ns(self) -> int:
        """CPU time that looking at the locks has taken."""
        return 0 if self._sampler is None else self._sampler.cpu_ns

    @property
    def traps(self) -> int:
        """How often any process has run into a probe so far."""
        with self._lock:
            return self._full_mode.traps

    @property
    def trap_costs(self) -> TrapCosts:
        """What a trap is taken to cost."""
        return self._full_mode.trap_costs

    def attach(self, pid: int) -> Target:
        """Begin to trace *pid*; raises what `inspect` and `GilProbe.attach` raise."""
        return self._attach(pid, self._method)

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._end(pid)
            traced = self._traced.pop(pid, None)
            if traced is not None:
                self.probe.forget(pid)
                self._full_mode.forget(pid)

    def tick(self) -> list[int]:
        """Look after all processes; return those that have replaced their program.

        Names new threads, notices deaths and checks that the numbers can be trusted. To be called
        a few times a second; whatever was missed in between is made up for.
        """
        with self._lock:
            replaced = []
            for notice in self.probe.notices():
                if notice.kind is NoticeKind.EXEC:
                    # One that is older than the attachment is about a program that has gone.
                    if not self._runs_the_same(notice.pid):
                        self._end(notice.pid)
                        replaced.append(notice.pid)
                elif notice.pid in self._traced:
                    self._heed(notice, self._traced[notice.pid])
            self._full_mode.step(self._traced.values())
            for traced in self._traced.values():
                traced.roles.read_wanted()
            self._notice_deaths()
            if time.monotonic() >= self._settle_at_s:
                self._settle(self._read())
            return replaced

    def wait(self, timeout_s: float) -> None:
        """Wait until `tick` has something to do, *timeout_s* at the most."""
        poll = select.poll()
        poll.register(self.probe.notice_ring.fileno(), select.POLLIN)
        due_s = self._full_mode.due_ns / 1e9 - time.monotonic()
        poll.poll(max(0.0, min(timeout_s, due_s)) * 1000)

    def observe(self) -> list[Observation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            raw = self._read()
            if self._settle(raw):
                # What a failed check has seen is forgotten, here and in the kernel.
                raw = self._read()
            for traced in self._traced.values():
                self._sample(traced)
                # Not left to the next tick: until it has its role, a thread's time is in no total.
                traced.roles.read_wanted()
            return [
                traced.observation(
                    raw.processes.get(pid, RawProcess()), raw.at_ns, self._full_mode.cost(traced)
                )
                for pid, traced in self._traced.items()
            ]

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            for pid in list(self._traced):
                self._end(pid)
        if self._sampler is not None:
            self._sampler.close()

    def _heed(self, notice: Notice, traced: Traced) -> None:
        if notice.kind is NoticeKind.RETURN:
            self._probe_returns(notice.pid)
        elif notice.kind is NoticeKind.THREAD:
            traced.roles.want(notice.tid)
        elif notice.kind is NoticeKind.LOCK and not traced.ended:
            self._learn_gils(traced)
        elif notice.kind is NoticeKind.WINDOW:
            self._full_mode.heed(traced)

    def _read(self) -> RawTotals:
        windows = {
            pid: traced.window for pid, traced in self._traced.items() if traced.window is not None
        }
        return self.probe.read(windows)

    def _sample(self, traced: Traced) -> None:
        """Look at the locks of *traced*, and take over what has been estimated of them."""
        if self._sampler is None or traced.ended:
            return
        for cond in traced.gils.keys() - traced.sampled_held_ns.keys():
            self._sampler.add(traced.pid, cond, traced.memory)
            traced.sampled_held_ns[cond] = 0
        self._sampler.look(traced.pid)
        for cond in traced.sampled_held_ns:
            traced.sampled_held_ns[cond] = self._sampler.held_ns(traced.pid, cond)

    def _observed_ns(self, pid: int, at_ns: int) -> int:
        traced = self._traced.get(pid)
        if traced is None or traced.window is None:
            return 0
        return traced.window.observed_at_most_ns(at_ns)

    def _attach(self, pid: int, method: str | None) -> Target:
        with while_alive(pid), contextlib.ExitStack() as undo:
            # Both stay bound to the program that runs now: whatever comes after it has the same
            # pid, but is not reached through them.
            pidfd = _open_pidfd(pid)
            undo.callback(os.close, pidfd)
            memory = undo.enter_context(_open_memory(pid))
            target = inspect(pid, self.cache, method=method)
            with self._lock:
                self._begin(target, pidfd, memory)
            undo.pop_all()
        return target

    def _begin(self, target: Target, pidfd: int, memory: ProcessMemory) -> None:
        pid = target.located.pid
        with contextlib.ExitStack() as undo:
            self._end(pid)
            runtime = runtime_of(memory, target.located.interpreter, target.located.load_bias)
            threads = ThreadFinder(pid, runtime)
            traced = Traced(
                target=target,
                memory=memory,
                runtime=runtime,
                roles=RoleReader(pid, runtime, threads),
                locks=LockMemory(memory, threads),
                pidfd=pidfd,
                since_ns=time.monotonic_ns(),
            )
            traced.refresh_gils()
            undo.callback(self._take_out, traced)
            self._place_probes(traced)
            if not traced.runs_the_same() or not target.file.is_still_there():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program, or its interpreter: try again.",
                )
            self._traced[pid] = traced
            self._sample(traced)
            undo.pop_all()

    def _place_probes(self, traced: Traced) -> None:
        try:
            self.probe.attach(traced.pid, traced.plan())
            self._full_mode.begin(traced)
        except ProcessLookupError as error:
            raise NotPython(f"process {traced.pid} ended while it was being attached") from error

    def _take_out(self, traced: Traced) -> None:
        self._full_mode.end(traced)
        self.probe.detach(traced.pid)
        self.probe.forget(traced.pid)
        self._full_mode.forget(traced.pid)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        self._sample(traced)
        if self._sampler is not None:
            self._sampler.drop(pid)
        self._full_mode.end(traced)
        traced.ended_ns = time.monotonic_ns()
        self.probe.detach(pid)
        traced.memory.close()
        os.close(traced.pidfd)

    def _notice_deaths(self) -> None:
        poll = select.poll()
        by_fd = {traced.pidfd: pid for pid, traced in self._traced.items() if not traced.ended}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(0):
            self._end(by_fd[fd])

    def _runs_the_same(self, pid: int) -> bool:
        traced = self._traced.get(pid)
        return traced is not None and not traced.ended and traced.runs_the_same()

    def _settle(self, raw: RawTotals) -> bool:
        """Check and tidy up what *raw* holds; return whether a process lost its credit."""
        self._settle_at_s = time.monotonic() + _SETTLE_S
        has_failed = False
        for pid, traced in list(self._traced.items()):
            process = raw.processes.get(pid, RawProcess())
            if traced.invalid:
                continue
            try:
                reason = self._look_after(traced, process, raw.at_ns)
            except Exception as error:  # noqa: BLE001 - see below
                # One process must not spoil the figures of the others.
                _log.exception("could not look after process %d", pid)
                reason = f"looking after it failed: {error!r}"
            if reason:
                has_failed = True
                self._fail(traced, reason)
        return has_failed

    def _look_after(self, traced: Traced, process: RawProcess, now_ns: int) -> str:
        if not traced.ended:
            # The notices of these may have been lost.
            if not traced.runs_the_same():
                self._end(traced.pid)
            elif traced.target.process.method == "libc":
                self._learn_gils(traced)
                self._probe_returns(traced.pid)
            elif not traced.gils:
                # Python was not initialised yet, or was just about to be.
                self._learn_gils(traced)
            else:
                self._full_mode.learn_locks(traced)
        reason = traced.invalid or traced.reason_to_distrust(process)
        if not reason:
            for tid in holders(process):
                traced.roles.want(tid)
            for tid, record in process.threads.items():
                traced.roles.want(tid)
                if has_exited(record):
                    # A dead thread's record is final. It leaves the map, which never fills up so.
                    self.probe.forget_thread(tid)
                    traced.bury(tid, process, now_ns, is_listed=self._keep_threads)
        return reason

    def _fail(self, traced: Traced, reason: str) -> None:
        pid = traced.pid
        self._end(pid)
        self.probe.forget(pid)
        self._full_mode.forget(pid)
        traced.window = None
        traced.invalid = reason
        if traced.target.process.method == "sites" and self._method is None:
            with contextlib.suppress(GilscopeError, OSError):
                self._attach(pid, "libc")

    def _learn_gils(self, traced: Traced) -> None:
        for cond in traced.refresh_gils():
            if traced.target.process.method == "libc":
                self.probe.add_gil(traced.pid, cond)
        self._full_mode.learn_locks(traced)

    def _probe_returns(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        for site in self.probe.new_return_sites(pid):
            self._probe_return(traced, site)

    def _probe_return(self, traced: Traced, site: ReturnSite) -> None:
        try:
            hook = hook_for(traced.pid, traced.memory, site)
            self.probe.add_hooks(traced.pid, [hook])
        except (FileNotFoundError, ProcessLookupError):
            return  # the process has just ended
        except (GilscopeError, OSError) as error:
            self._fail(traced, f"cannot probe the return at {site.address:#x}: {error}")
            return
        self.probe.mark_probed(traced.pid, site)


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise NotPython(f"there is no process {pid}") from error
    except OSError as error:
        # EINVAL or ENOENT, by the kernel's version: it names a thread.
        process = procfs.read_status(pid).tgid
        raise NotPython(
            f"{pid} is a thread of process {process}, not a process",
            remedy=f"Trace the process: -p {process}",
        ) from error


def _open_memory(pid: int) -> ProcessMemory:
    try:
        return ProcessMemory(pid)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except PermissionError as error:
        # A process that is no Python is none of gilscope's business, permitted or not.
        locate(pid)
        raise NotPermitted(
            f"not permitted to read the memory of process {pid} ({error.strerror})"
        ) from error
