"""Traces processes: attaches to them, looks after them, and says what has been counted."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from gilscope.budget.trap_costs import TrapCosts
from gilscope.errors import GilscopeError, MemoryUnanswered
from gilscope.gil.abi import NoticeKind
from gilscope.gil.probes.libc_method import ReturnSite, hook_for
from gilscope.gil.probes.notices import Notice
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import Target, inspect
from gilscope.gil.totals.process_totals import has_exited, holders
from gilscope.gil.totals.raw import RawProcess, RawTotals
from gilscope.gil.tracing.attachments import Attachments
from gilscope.gil.tracing.hold_windows import CONTENTION, ObservationPlan
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import GilObservation
from gilscope.model.timeline import Timeline
from gilscope.process.access import while_alive
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.pidfd import open_pidfd
from gilscope.process.view import view_of
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.registry import detect, open_memory
from gilscope.runtimes.site_cache import SiteCache
from gilscope.text.units import NS_PER_S

__all__ = ["GilAccount"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0
"""So often all maps are read even if nobody asks: dead threads leave them, checks are made."""
_FREE_CHILDREN_S = 0.05
"""Between two times at which probes are taken out of forked children."""
_ASKED_AGAIN_S = 20.0
"""Who asks does that too, and is likely to ask again within this time."""


_ANOTHER_RUNS = "another Python of the process runs than the one that was attached to"


class GilAccount:
    """The processes that are being traced. Its methods may be called from several threads."""

    def __init__(  # noqa: PLR0913 - most have defaults
        self,
        probe: GilProbe,
        cache: SiteCache,
        *,
        method: str | None = None,
        keep_threads: bool = True,
        plan: ObservationPlan = CONTENTION,
        watch: ProcessWatch | None = None,
    ) -> None:
        """Trace with *probe*; *method* forces ``sites`` or ``libc``; *plan* says how closely.

        With *keep_threads* every dead thread stays listed by itself, and stacks are kept as a
        whole; without, the dead threads of one role are added up, and stacks with the same
        innermost frame are one: then a process that runs for ever takes no more memory. *watch*
        may be shared with others.
        """
        self.probe = probe
        self.cache = cache
        self._method = method
        self._keep_threads = keep_threads
        self._lock = threading.RLock()
        self._settle_at_s = 0.0
        self._forked: set[int] = set()
        self._free_children_s = 0.0
        self._known_losses = 0
        self._closing = contextlib.ExitStack()
        self._processes = Attachments(
            probe,
            plan,
            self._closing.enter_context(ProcessWatch()) if watch is None else watch,
            keep_callers=keep_threads,
        )
        self._traced = self._processes.by_pid
        self._readings = self._processes.readings
        self._full_mode = self._processes.full_mode

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if not traced.ended)

    @property
    def untrusted_pids(self) -> tuple[int, ...]:
        """The processes whose probes failed a check; they may well be alive."""
        with self._lock:
            return tuple(pid for pid, traced in self._traced.items() if traced.invalid)

    @property
    def sampling_cpu_ns(self) -> int:
        """CPU time that looking at the locks has taken."""
        held_time = self._processes.held_time
        return 0 if held_time is None else held_time.cpu_ns

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

    def drop_ended(self, kept_s: float, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended *kept_s* ago or earlier.

        One whose probes could not be trusted is shown as such for as long as it is *alive*.
        """
        now_ns = time.monotonic_ns()
        with self._lock:
            for pid, traced in list(self._traced.items()):
                is_shown = bool(traced.invalid) and pid in alive
                ended_ns = traced.ended_ns
                if ended_ns is not None and now_ns - ended_ns >= kept_s * NS_PER_S and not is_shown:
                    self._processes.drop(pid)

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._processes.drop(pid)

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
                    if not self._processes.runs_the_same(notice.pid):
                        self._processes.end(notice.pid)
                        replaced.append(notice.pid)
                elif notice.kind is NoticeKind.FORK:
                    self._forked.add(notice.pid)
                elif notice.pid in self._traced:
                    with self._failing_alone(self._traced[notice.pid]):
                        self._apply(notice, self._traced[notice.pid])
            self._readings.take_spans()
            self._readings.learn_stacks()
            self._full_mode.step()
            self._processes.give_up_unanswered()
            for traced in list(self._traced.values()):
                with self._failing_alone(traced):
                    self._processes.look_after(traced)
            self._processes.end_dead()
            self._free_children()
            if time.monotonic() >= self._settle_at_s:
                self._settle(self._readings.read(), _SETTLE_S)
            return replaced

    def wait(self, timeout_s: float) -> None:
        """Wait until `tick` has something to do, *timeout_s* at the most.

        New stacks are no reason for it: they are read here, at a fraction of the cost.
        """
        until_s = min(time.monotonic() + timeout_s, self._full_mode.due_ns / 1e9)
        if self._forked:
            until_s = min(until_s, self._free_children_s)
        self._processes.wakeups.wait(
            until_s, self._learn_stacks, lambda: self._readings.stacks_at_s
        )

    def observe(self, *, is_final: bool = False) -> list[GilObservation]:
        """Return what has been counted of every process until now.

        *is_final*: nobody will ask again, so what is going on is counted as if it ended now.
        """
        with self._lock:
            # Before the tables, whose time is that of the observation: what is estimated of the
            # held time must not reach beyond it.
            for traced in list(self._traced.values()):
                with self._failing_alone(traced):
                    self._processes.look_at_locks(traced)
            raw = self._readings.read_whole() if is_final else self._readings.read()
            if self._settle(raw, _ASKED_AGAIN_S):
                # What a failed check has seen is forgotten, here and in the kernel.
                raw = self._readings.read()
            self._readings.note_timelines(raw)
            for traced in list(self._traced.values()):
                with self._failing_alone(traced):
                    # Not left to the next tick: until it has its role, a thread's time is in no
                    # total.
                    self._processes.read_roles(traced)
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
            return self._readings.timeline(pid)

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            self._processes.close()
        if self._processes.held_time is not None:
            self._processes.held_time.close()
        self._closing.close()

    def _apply(self, notice: Notice, traced: AttachedProcess) -> None:
        if notice.kind is NoticeKind.RETURN:
            self._probe_returns(notice.pid)
        elif notice.kind is NoticeKind.THREAD:
            traced.runtime.threads.want(notice.tid)
        elif notice.kind is NoticeKind.LOCK and not traced.ended:
            self._processes.learn_gils(traced)
        elif notice.kind is NoticeKind.WINDOW:
            self._full_mode.learn(traced)

    def _free_children(self) -> None:
        # For all that have been forked meanwhile at once: it takes as long for many as for one.
        if self._forked and time.monotonic() >= self._free_children_s:
            self._free_children_s = time.monotonic() + _FREE_CHILDREN_S
            forked, self._forked = self._forked, set()
            self._processes.free_children(forked)

    @contextlib.contextmanager
    def _failing_alone(self, traced: AttachedProcess) -> Iterator[None]:
        """Let whatever fails cost *traced* its credit, and no other process anything."""
        try:
            yield
        except ReadUnanswered:
            pass  # that is seen next
        except Exception as error:  # noqa: BLE001 - whatever fails
            _log.exception("could not look after process %d", traced.pid)
            if not traced.invalid:
                self._fail(traced, f"looking after it failed: {error!r}")
        if traced.reads.stopped and not (traced.invalid or traced.ended):
            self._fail(traced, traced.reads.stopped)

    def _learn_stacks(self) -> None:
        with self._lock:
            self._readings.learn_stacks()

    def _attach(self, pid: int, method: str | None) -> Target:
        if self._processes.watch.reader.is_exhausted:
            raise MemoryUnanswered("the memory of so many processes hangs that no other is read")
        with while_alive(pid), contextlib.ExitStack() as undo:
            # Both stay bound to the program that runs now: whatever comes after it has the same
            # pid, but is not reached through them.
            pidfd = open_pidfd(pid)
            undo.callback(os.close, pidfd)
            memory = undo.enter_context(open_memory(pid))
            # From here on the program is the one whose memory is open, or the attachment fails.
            view = view_of(pid)
            target = inspect(view, self.cache, method=method)
            undo.callback(target.close)
            for file in (target.build.file, target.file):
                memory.allow(file.mapping)
            with self._lock:
                self._processes.begin(target, view, pidfd, memory)
            undo.pop_all()
        return target

    def _settle(self, raw: RawTotals, again_in_s: float) -> bool:
        """Check and tidy up what *raw* holds; return whether a process lost its credit."""
        self._settle_at_s = time.monotonic() + again_in_s
        has_failed = False
        losses = self.probe.keeper_losses
        for pid, traced in list(self._traced.items()):
            process = raw.processes.get(pid, RawProcess())
            if traced.invalid:
                continue
            if self._have_probes_gone(traced):
                has_failed = True
                # Asked only now: the keeper may have ended since the last process was looked at.
                is_keeper_lost = self.probe.keeper_losses != self._known_losses
                self._renew(traced, is_keeper_lost=is_keeper_lost)
                continue
            reason = ""
            with self._failing_alone(traced):
                reason = self._look_after(traced, process, raw.at_ns)
            has_failed |= bool(traced.invalid)
            if reason:
                has_failed = True
                self._fail(traced, reason)
        # Of one that was lost meanwhile, the rest is noticed the next time.
        self._known_losses = losses
        return has_failed

    def _look_after(self, traced: AttachedProcess, process: RawProcess, now_ns: int) -> str:
        if not traced.ended:
            # The notices of these may have been lost.
            if not traced.runs_the_same():
                self._processes.end(traced.pid)
            elif traced.target.process.method == "libc":
                self._processes.learn_gils(traced)
                self._probe_returns(traced.pid)
            elif not traced.gils:
                # Python was not initialised yet, or was just about to be.
                self._processes.learn_gils(traced)
                if not traced.gils and self._runs_another(traced):
                    return _ANOTHER_RUNS
            else:
                self._full_mode.learn_locks(traced)
        reason = traced.invalid or traced.reason_to_distrust(process)
        if not reason:
            for tid in holders(process):
                traced.runtime.threads.want(tid)
            for tid, record in process.threads.items():
                traced.learn_role(tid, record)
                traced.runtime.threads.want(tid)
                if has_exited(record):
                    # A dead thread's record is final. It leaves the map, which never fills up so.
                    self.probe.forget_thread_of(traced.pid, tid)
                    traced.retire(tid, process, now_ns, is_listed=self._keep_threads)
        return reason

    def _fail(self, traced: AttachedProcess, reason: str) -> None:
        self._processes.distrust(traced, reason)
        if reason == _ANOTHER_RUNS:
            with contextlib.suppress(GilscopeError, OSError):
                self._attach(traced.pid, self._method)
        elif traced.reads.stopped:
            pass  # whichever way it is attached, it has to be read
        elif traced.target.process.method == "sites" and self._method is None:
            with contextlib.suppress(GilscopeError, OSError):
                self._attach(traced.pid, "libc")

    def _have_probes_gone(self, traced: AttachedProcess) -> bool:
        """Return whether a probe of *traced* is not in its memory any more."""
        if traced.ended:
            return False
        try:
            return traced.missing_breakpoint() is not None
        except OSError:
            return False  # it has ended, or replaced its program, of which there will be notice

    def _renew(self, traced: AttachedProcess, *, is_keeper_lost: bool) -> None:
        """Attach *traced* once more, whose probes have gone; its figures begin anew."""
        if traced.renewals and not is_keeper_lost:
            self._fail(traced, "its probes have gone again: something writes over its code")
            return
        _log.warning(
            "process %d: its probes have gone (%s); they are put in once more, and its figures "
            "begin anew",
            traced.pid,
            "the process that holds them has ended"
            if is_keeper_lost
            else "its code was written to",
        )
        try:
            self._attach(traced.pid, self._method)
        except (GilscopeError, OSError) as error:
            self._processes.distrust(traced, f"its probes have gone, and were refused: {error}")
            return
        self._traced[traced.pid].renewals = traced.renewals + 1

    def _runs_another(self, traced: AttachedProcess) -> bool:
        """Return whether the process has come to run another Python than the one attached to."""
        known = traced.target.build
        try:
            found = detect(view_of(traced.pid))
        except (GilscopeError, OSError):
            return False
        same = (found.file.identity, found.load_bias) == (known.file.identity, known.load_bias)
        return not same

    def _probe_returns(self, pid: int) -> None:
        traced = self._traced.get(pid)
        if traced is None or traced.ended:
            return
        for site in self.probe.new_return_sites(pid):
            self._probe_return(traced, site)

    def _probe_return(self, traced: AttachedProcess, site: ReturnSite) -> None:
        try:
            with hook_for(traced.pid, site) as hook:
                self.probe.add_hooks(traced.pid, [hook])
        except (FileNotFoundError, ProcessLookupError):
            return  # the process has just ended
        except (GilscopeError, OSError) as error:
            self._fail(traced, f"cannot probe the return at {site.address:#x}: {error}")
            return
        self.probe.mark_probed(traced.pid, site)
