"""Traces processes: attaches the probes, watches over them, and says what they have counted."""

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gilscope import procfs
from gilscope.errors import GilscopeError, NotPermitted, NotPython
from gilscope.gil.account import RawProcess, RawTotals, has_exited, process_totals, unknown_gils
from gilscope.gil.memory import TornRead
from gilscope.gil.probe import GilProbe, Hook, NoticeKind, Plan, ReturnSite
from gilscope.gil.return_sites import hook_for
from gilscope.gil.role_reader import RoleReader
from gilscope.gil.runtime import Runtime, read_gils, runtime_of
from gilscope.gil.site_cache import SiteCache
from gilscope.model import ENDED_INTERPRETER, Gil, Observation, ProcessTotals, ThreadTotals
from gilscope.procmem import ProcessMemory
from gilscope.target import Target, inspect, locate, while_alive

__all__ = ["Tracer"]

_log = logging.getLogger(__name__)

_UNLISTED_S = 5.0
"""So long the GILs of a process may be unreadable, as they are while it starts."""

_MOST_DEAD_THREADS = 10_000
"""That are listed one by one; further ones are added up by role."""

_SETTLE_S = 2.0
"""So often all maps are read even if nobody asks: dead threads leave them, checks are made."""


@dataclass(slots=True)
class _Traced:
    """One process with probes in it, or that had them."""

    target: Target
    memory: ProcessMemory
    runtime: Runtime
    roles: RoleReader
    pidfd: int
    since_ns: int
    gils: dict[int, Gil] = field(default_factory=dict)
    """By address of ``cond``."""
    dead_threads: list[ThreadTotals] = field(default_factory=list)
    invalid: str = ""
    ended: bool = False

    unlisted_since_s: float = 0.0
    """Since when threads wait for locks while no GIL of the process can be read; 0: not so."""

    @property
    def pid(self) -> int:
        return self.target.located.pid

    def runs_the_same(self) -> bool:
        """Return whether the process still runs the program that was attached."""
        try:
            self.memory.read(self.target.located.file.mapping.start, 1)
        except OSError:
            return False
        return True


class Tracer:
    """The processes that are being traced. Its methods may be called from several threads."""

    def __init__(
        self,
        probe: GilProbe,
        cache: SiteCache,
        *,
        method: str | None = None,
        keep_threads: bool = True,
    ) -> None:
        """Trace with *probe*; *method* forces ``sites`` or ``libc``.

        With *keep_threads* every dead thread stays listed by itself; without, the dead threads of
        one role are added up, so that a process that starts threads for ever takes no more memory.
        """
        self.probe = probe
        self.cache = cache
        self._method = method
        self._keep_threads = keep_threads
        self._traced: dict[int, _Traced] = {}
        self._lock = threading.RLock()
        self._settle_at_s = 0.0

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
                elif notice.kind is NoticeKind.RETURN:
                    self._probe_returns(notice.pid)
                elif notice.pid in self._traced:
                    self._traced[notice.pid].roles.want(notice.tid)
            for traced in self._traced.values():
                traced.roles.read_wanted()
            self._notice_deaths()
            if time.monotonic() >= self._settle_at_s:
                self._settle(self.probe.read())
            return replaced

    def observe(self) -> list[Observation]:
        """Return what has been counted of every process until now."""
        with self._lock:
            raw = self.probe.read()
            if self._settle(raw):
                # What a failed check has seen is forgotten, here and in the kernel.
                raw = self.probe.read()
            for traced in self._traced.values():
                # Not left to the next tick: until it has its role, a thread's time is in no total.
                traced.roles.read_wanted()
            return [
                self._observation(traced, raw.processes.get(pid, RawProcess()), raw.at_ns)
                for pid, traced in self._traced.items()
            ]

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            for pid in list(self._traced):
                self._end(pid)

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
            traced = _Traced(
                target=target,
                memory=memory,
                runtime=runtime,
                roles=RoleReader(pid, runtime),
                pidfd=pidfd,
                since_ns=time.monotonic_ns(),
            )
            _refresh_gils(traced)
            self._place_probes(traced)
            undo.callback(self._take_out, pid)
            if not traced.runs_the_same() or not target.file.is_still_there():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program, or its interpreter: try again.",
                )
            self._traced[pid] = traced
            undo.pop_all()

    def _place_probes(self, traced: _Traced) -> None:
        target = traced.target
        located = target.located
        plan = Plan(
            hooks=tuple(
                Hook(point.program, target.file.path, point.offset) for point in target.hookpoints
            ),
            load_bias=located.load_bias,
            build_id=located.build_id,
            callers=target.sites.callers if target.sites else (),
            conds=tuple(traced.gils) if target.process.method == "libc" else (),
        )
        try:
            self.probe.attach(traced.pid, plan)
        except ProcessLookupError as error:
            raise NotPython(f"process {traced.pid} ended while it was being attached") from error

    def _take_out(self, pid: int) -> None:
        self.probe.detach(pid)
        self.probe.forget(pid)

    def _end(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        traced.ended = True
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

    def _look_after(self, traced: _Traced, process: RawProcess, now_ns: int) -> str:
        if not traced.ended:
            # The notices of these may have been lost.
            if not traced.runs_the_same():
                self._end(traced.pid)
            elif traced.target.process.method == "libc":
                self._learn_gils(traced)
                self._probe_returns(traced.pid)
        reason = traced.invalid or self._reason_to_distrust(traced, process)
        if not reason:
            for tid, record in process.threads.items():
                traced.roles.want(tid)
                if has_exited(record):
                    self._bury(traced, tid, process, now_ns)
        return reason

    def _bury(self, traced: _Traced, tid: int, process: RawProcess, now_ns: int) -> None:
        # A dead thread's record is final. It leaves the map, so that the map never fills up.
        one = RawProcess(threads={tid: process.threads[tid]})
        (dead,) = process_totals(one, now_ns, {}, {tid: traced.roles.final(tid)}).threads
        self.probe.forget_thread(tid)
        traced.roles.forget(tid)
        if self._keep_threads and len(traced.dead_threads) < _MOST_DEAD_THREADS:
            traced.dead_threads.append(dead)
        else:
            traced.dead_threads = _added_up([*traced.dead_threads, replace(dead, tid=0)])

    def _reason_to_distrust(self, traced: _Traced, process: RawProcess) -> str:
        invalid = sorted(loss.value for loss in process.lost if loss.is_invalid)
        if invalid:
            return f"what waits is not a GIL ({', '.join(invalid)})"
        strangers = unknown_gils(process, traced.gils)
        if strangers and traced.ended and not traced.gils:
            # It ended before anybody could ask it. One lock is the main interpreter's.
            if len(strangers) == 1:
                traced.gils[strangers[0]] = Gil(cond=strangers[0], interpreter_id=0)
        elif strangers and not traced.ended:
            _refresh_gils(traced)
            return self._judge_strangers(traced, unknown_gils(process, traced.gils))
        return ""

    def _judge_strangers(self, traced: _Traced, strangers: list[int]) -> str:
        if not strangers:
            traced.unlisted_since_s = 0.0
        elif not traced.gils:
            now_s = time.monotonic()
            traced.unlisted_since_s = traced.unlisted_since_s or now_s
            if now_s - traced.unlisted_since_s > _UNLISTED_S:
                return "threads wait for a lock, but no GIL of the process can be read"
        elif traced.runtime.layout.gil_in_runtime is None:
            # Every interpreter may have its own, and this one has ended since. The probe has seen
            # its mutex, its state and its interval to be a GIL's.
            traced.gils.update({cond: Gil(cond, ENDED_INTERPRETER) for cond in strangers})
        else:
            known = ", ".join(f"{cond:#x}" for cond in traced.gils)
            return (
                f"threads wait for a lock at {strangers[0]:#x}, "
                f"but the GIL of this process is at {known}"
            )
        return ""

    def _fail(self, traced: _Traced, reason: str) -> None:
        pid = traced.pid
        self._end(pid)
        self.probe.forget(pid)
        traced.invalid = reason
        if traced.target.process.method == "sites" and self._method is None:
            with contextlib.suppress(GilscopeError, OSError):
                self._attach(pid, "libc")

    def _learn_gils(self, traced: _Traced) -> None:
        known = set(traced.gils)
        _refresh_gils(traced)
        for cond in set(traced.gils) - known:
            self.probe.add_gil(traced.pid, cond)

    def _probe_returns(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        for site in self.probe.new_return_sites(pid):
            self._probe_return(traced, site)

    def _probe_return(self, traced: _Traced, site: ReturnSite) -> None:
        try:
            hook = hook_for(traced.pid, traced.memory, site)
            self.probe.add_hooks(traced.pid, [hook])
        except (FileNotFoundError, ProcessLookupError):
            return  # the process has just ended
        except (GilscopeError, OSError) as error:
            self._fail(traced, f"cannot probe the return at {site.address:#x}: {error}")
            return
        self.probe.mark_probed(traced.pid, site)

    def _observation(self, traced: _Traced, process: RawProcess, now_ns: int) -> Observation:
        if traced.invalid:
            totals = ProcessTotals(now_ns, (), (), {})
        else:
            alive = RawProcess(
                threads={
                    tid: record for tid, record in process.threads.items() if not has_exited(record)
                },
                gils=process.gils,
                histograms=process.histograms,
                lost=process.lost,
            )
            totals = process_totals(alive, now_ns, traced.gils, traced.roles.known)
            totals = replace(totals, threads=(*totals.threads, *traced.dead_threads))
        return Observation(
            process=traced.target.process,
            since_ns=traced.since_ns,
            totals=totals,
            invalid=traced.invalid,
            ended=traced.ended,
        )


def _added_up(threads: Iterable[ThreadTotals]) -> list[ThreadTotals]:
    by_role: dict[str | None, ThreadTotals] = {}
    for thread in threads:
        known = by_role.get(thread.role)
        by_role[thread.role] = thread if known is None else _sum(known, thread)
    return list(by_role.values())


def _sum(one: ThreadTotals, other: ThreadTotals) -> ThreadTotals:
    return replace(
        one,
        lost={kind: one.lost[kind] + tally for kind, tally in other.lost.items()},
        drop_requests=one.drop_requests + other.drop_requests,
    )


def _refresh_gils(traced: _Traced) -> None:
    with contextlib.suppress(TornRead, OSError):
        for gil in read_gils(traced.runtime):
            # An interpreter may get the memory of one that has ended. Their lock keeps its name:
            # what was counted never moves to another label.
            traced.gils.setdefault(gil.cond, gil)


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
