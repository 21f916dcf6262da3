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
from gilscope.gil.blame import Blame
from gilscope.gil.calibration import TrapCosts
from gilscope.gil.full_mode import CONTENTION, FullMode, ObservationPlan
from gilscope.gil.held_sampler import HeldSampler
from gilscope.gil.lock_memory import LockMemory
from gilscope.gil.notices import Notice, NoticeKind
from gilscope.gil.probe import GilProbe
from gilscope.gil.return_sites import ReturnSite, hook_for
from gilscope.gil.role_reader import RoleReader
from gilscope.gil.runtime import Runtime, runtime_of
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.thread_finder import ThreadFinder
from gilscope.gil.timeline import Timelines
from gilscope.gil.traced import Traced
from gilscope.model import Mode, Observation, Timeline
from gilscope.procmem import ProcessMemory
from gilscope.target import Target, inspect, locate, while_alive

__all__ = ["Tracer"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0
"""So often all maps are read even if nobody asks: dead threads leave them, checks are made."""
_MOST_READINGS = 20
"""Until the tables agree; if they never do, something was lost, which is counted."""
_STACK_PAUSE_S = 0.05
"""After new stacks, and before the next ones are read."""
_ASKED_AGAIN_S = 20.0
"""Who asks does that too, and is likely to ask again within this time."""


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

        With *keep_threads* every dead thread stays listed by itself, and stacks are kept as a
        whole; without, the dead threads of one role are added up, and stacks with the same
        innermost frame are one: then a process that runs for ever takes no more memory.
        """
        self.probe = probe
        self.cache = cache
        self._method = method
        self._keep_threads = keep_threads
        self._reads_stacks = plan.reads_stacks
        self._traced: dict[int, Traced] = {}
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._full_mode = FullMode(probe, plan)
        self._poll = select.epoll()
        """Ready when the probes have noticed something, or a traced process has ended."""
        self._poll.register(probe.notice_ring.fileno(), select.EPOLLIN)
        self._poll.register(probe.stack_ring.fileno(), select.EPOLLIN)
        self._stacks_at_s = 0.0
        """When the last new stack was read."""
        self._pid_of: dict[int, int] = {}
        """By pidfd, of the traced processes that have not ended."""
        self._timelines = Timelines()
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
                self._timelines.forget(pid)

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
            self._take_spans()
            self._learn_stacks()
            self._full_mode.step()
            for traced in self._traced.values():
                traced.roles.read_wanted()
                if not (traced.gils or traced.ended):
                    # It was attached before its Python was initialised.
                    self._learn_gils(traced)
                if len(traced.sampled_held_ns) < len(traced.gils):
                    self._sample(traced)
            self._notice_deaths()
            if time.monotonic() >= self._settle_at_s:
                self._settle(self._read(), _SETTLE_S)
            return replaced

    def wait(self, timeout_s: float) -> None:
        """Wait until `tick` has something to do, *timeout_s* at the most.

        New stacks are no reason for it: they are read here, at a fraction of the cost.
        """
        stacks = self.probe.stack_ring.fileno()
        until_s = min(time.monotonic() + timeout_s, self._full_mode.due_ns / 1e9)
        while (now_s := time.monotonic()) < until_s:
            # A program that does something new all the time must not keep the agent busy.
            paused_until_s = self._stacks_at_s + _STACK_PAUSE_S
            is_paused = now_s < paused_until_s
            self._poll.modify(stacks, 0 if is_paused else select.EPOLLIN)
            pause_s = (min(until_s, paused_until_s) if is_paused else until_s) - now_s
            ready = {fd for fd, _ in self._poll.poll(pause_s)}
            if ready - {stacks}:
                return
            if ready:
                with self._lock:
                    self._learn_stacks()

    def observe(self, *, is_final: bool = False) -> list[Observation]:
        """Return what has been counted of every process until now.

        *is_final*: nobody will ask again, so what is going on is counted as if it ended now.
        """
        with self._lock:
            raw = self._read_whole() if is_final else self._read()
            if self._settle(raw, _ASKED_AGAIN_S):
                # What a failed check has seen is forgotten, here and in the kernel.
                raw = self._read()
            self._note_timelines(raw)
            for traced in self._traced.values():
                self._sample(traced)
                # Not left to the next tick: until it has its role, a thread's time is in no total.
                traced.roles.read_wanted()
            return [
                traced.observation(
                    raw.processes.get(pid, RawProcess()),
                    raw.at_ns,
                    self._full_mode.cost(traced),
                    is_final=is_final,
                )
                for pid, traced in self._traced.items()
            ]

    def timeline(self, pid: int) -> Timeline | None:
        """Return the waits and holds of *pid* one by one, as of the last `observe`.

        None where the probe was not asked to send them, or nothing is known of the process.
        """
        with self._lock:
            traced = self._traced.get(pid)
            if traced is None or not self.probe.sends_spans:
                return None
            return self._timelines.timeline(pid, traced.gils, traced.stack)

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

    def _blame(self, runtime: Runtime) -> Blame | None:
        if not self._reads_stacks:
            return None
        return Blame(runtime, keep_callers=self._keep_threads)

    def _learn_stacks(self) -> None:
        # Names are read at once: the code may be gone soon, and the process too.
        for stack in self.probe.blame.new_stacks():
            self._stacks_at_s = time.monotonic()
            traced = self._traced.get(stack.pid)
            if traced is not None and traced.blame is not None:
                traced.blame.learn(stack)

    def _read(self) -> RawTotals:
        windows = {
            pid: traced.window for pid, traced in self._traced.items() if traced.window is not None
        }
        raw = self.probe.read(windows)
        # After the edges: a stack is sent before it is in any.
        self._learn_stacks()
        for pid, process in raw.processes.items():
            traced = self._traced.get(pid)
            if traced is not None and traced.blame is not None:
                traced.blame.keep(process.taken)
                surplus = traced.blame.surplus(process)
                if surplus:
                    self.probe.blame.send_again(pid, surplus)
        return raw

    def _read_whole(self) -> RawTotals:
        """Return totals of which no wait is in one table already and in another one not yet."""
        best, least_ns = self._read(), None
        for _ in range(_MOST_READINGS):
            raw = self._read()
            unblamed_ns = sum(
                traced.unblamed_ns(raw.processes.get(pid, RawProcess()), raw.at_ns)
                for pid, traced in self._traced.items()
            )
            # What is taken over in between is in an earlier reading, too.
            is_moved = any(process.taken.edges for process in raw.processes.values())
            if least_ns is None or is_moved or unblamed_ns < least_ns:
                best, least_ns = raw, unblamed_ns
            if not least_ns:
                break
        return best

    def _take_spans(self) -> None:
        for span in self.probe.spans():
            # Of a process that has been dropped, some may still be in the ring.
            if span["tgid"] in self._traced:
                self._timelines.add(span)

    def _note_timelines(self, raw: RawTotals) -> None:
        if not self.probe.sends_spans:
            return
        for pid, process in raw.processes.items():
            if pid in self._traced:
                self._timelines.note(pid, process, raw.at_ns)
        # After what goes on: what has ended in between is found in both.
        self._take_spans()

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
            self._timelines.forget(pid)
            runtime = runtime_of(memory, target.located.interpreter, target.located.load_bias)
            threads = ThreadFinder(pid, runtime)
            traced = Traced(
                target=target,
                memory=memory,
                runtime=runtime,
                roles=RoleReader(pid, runtime, threads),
                locks=LockMemory(memory, threads),
                blame=self._blame(runtime),
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
            self._poll.register(pidfd, select.EPOLLIN)
            self._pid_of[pidfd] = pid
            self._traced[pid] = traced
            self._sample(traced)
            undo.pop_all()

    def _place_probes(self, traced: Traced) -> None:
        try:
            self.probe.attach(traced.pid, traced.plan())
            self._full_mode.begin(traced)
        except (FileNotFoundError, ProcessLookupError) as error:
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
        self._learn_stacks()
        if self._sampler is not None:
            self._sampler.drop(pid)
        self._full_mode.end(traced)
        traced.ended_ns = time.monotonic_ns()
        self.probe.detach(pid)
        traced.memory.close()
        del self._pid_of[traced.pidfd]
        self._poll.unregister(traced.pidfd)
        os.close(traced.pidfd)

    def _notice_deaths(self) -> None:
        for fd, _ in self._poll.poll(0):
            if fd in self._pid_of:
                self._end(self._pid_of[fd])

    def _runs_the_same(self, pid: int) -> bool:
        traced = self._traced.get(pid)
        return traced is not None and not traced.ended and traced.runs_the_same()

    def _settle(self, raw: RawTotals, again_in_s: float) -> bool:
        """Check and tidy up what *raw* holds; return whether a process lost its credit."""
        self._settle_at_s = time.monotonic() + again_in_s
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
                traced.learn_role(tid, record)
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
        self._timelines.forget(pid)
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
