"""Traces processes: attaches to them, looks after them, and says what has been counted."""

import contextlib
import logging
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from gilscope.budget.trap_costs import TrapCosts
from gilscope.errors import NoGil, without_gil
from gilscope.gil.abi import NoticeKind
from gilscope.gil.plan import CONTENTION, ObservationPlan
from gilscope.gil.probes.notices import Notice
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import Target
from gilscope.gil.totals.raw import RawProcess, RawTotals
from gilscope.gil.tracing.attachments import Attachments
from gilscope.gil.tracing.checks import Checks
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import BriefRelease, GilObservation
from gilscope.model.timeline import Moment, Timeline
from gilscope.process.attachment import Retention
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.site_cache import SiteCache

__all__ = ["GilAccount"]

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0
"""How often all maps are read without a scrape: dead threads leave them, checks are made."""
_SETTLE_EACH_S, _LONGEST_SETTLE_S = 0.03, 30.0
"""Of hundreds of processes more seldom. It is their number that counts, and not how long it takes:
where threads come and go by the thousand, their records must leave the maps all the same."""
_FREE_CHILDREN_S = 0.05
"""Between two times at which probes are taken out of forked children."""
_CHECK_READS_S = 1.0
"""How often it is asked whether the memory of a process is still read."""
_ASKED_AGAIN_S = 20.0
"""Who asks does that too, and is likely to ask again within this time."""


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
        on_long_wait: Callable[[int, int], None] = lambda _pid, _tid: None,
    ) -> None:
        """Trace with *probe*; *method* forces ``sites`` or ``libc``; *plan* says how closely.

        With *keep_threads* every dead thread stays listed by itself, and stacks are kept as a
        whole; without, the dead threads of one role are added up, and stacks with the same
        innermost frame are one: then a process that runs for ever takes no more memory. *watch*
        may be shared with others. *on_long_wait* is told the process and the thread of a wait of
        which *probe* gives notice, and must not take its time.
        """
        self.probe = probe
        self.without_gil: NoGil | None = None
        """Says so of the last process that was attached before it was known to have no GIL."""
        self.forks = 0
        """How often any process has forked, as far as `tick` has heard of it."""
        self._on_long_wait = on_long_wait
        self._method = method
        self._settle_at_s = 0.0
        self._forked: set[int] = set()
        self._free_children_s = 0.0
        self._check_reads_s = 0.0
        self._closing = contextlib.ExitStack()
        self._processes = Attachments(
            probe,
            plan,
            self._closing.enter_context(ProcessWatch()) if watch is None else watch,
            cache,
            keep_callers=keep_threads,
        )
        self._checks = Checks(probe, self._processes, method, keep_threads=keep_threads)
        self._lock = self._processes.lock

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are traced and have not ended."""
        with self._lock:
            return tuple(traced.pid for traced in self._processes.all() if not traced.ended)

    def traces(self, pid: int) -> bool:
        """Return whether *pid* is traced and has not ended."""
        # One lookup, which needs no lock: who holds it may be looking after a thousand of them.
        traced = self._processes.by_pid.get(pid)
        return traced is not None and not traced.ended

    @property
    def untrusted_pids(self) -> tuple[int, ...]:
        """The processes whose probes failed a check; they may well be alive."""
        with self._lock:
            return tuple(traced.pid for traced in self._processes.all() if traced.invalid)

    @property
    def sampling_cpu_ns(self) -> int:
        """CPU time that looking at the locks has taken."""
        return self._processes.sampling_cpu_ns

    @property
    def traps(self) -> int:
        """How often any process has run into a probe so far."""
        with self._lock:
            return self._processes.windows.traps

    @property
    def trap_costs(self) -> TrapCosts:
        """What a trap is taken to cost."""
        return self._processes.windows.trap_costs

    def attach(self, pid: int) -> Target:
        """Begin to trace *pid*; raises what `inspect` and `GilProbe.attach` raise."""
        return self._processes.attach(pid, self._method)

    def drop_ended(self, retention: Retention, alive: AbstractSet[int]) -> None:
        """Forget what was counted of processes that have ended, as *retention* says.

        One whose probes could not be trusted is shown as such for as long as it is *alive*.
        """
        # Mostly there are none, and then nobody is waited for.
        ended = {
            traced.pid: (traced, at_ns)
            for traced in self._processes.all()
            if (at_ns := traced.ended_ns) is not None
            and not (traced.invalid and traced.pid in alive)
        }
        ended_ns = {pid: at_ns for pid, (_, at_ns) in ended.items()}
        for pid in retention.over(ended_ns, time.monotonic_ns()):
            with self._lock:
                if self._processes.by_pid.get(pid) is ended[pid][0]:
                    self._processes.drop(pid)

    def attached(self, pid: int) -> AttachedProcess | None:
        """Return process *pid* if it is traced and has not ended."""
        with self._lock:
            traced = self._processes.by_pid.get(pid)
            return None if traced is None or traced.ended or traced.invalid else traced

    def runs_the_same(self, pid: int) -> bool:
        """Return whether *pid* is traced and still runs the program that was attached."""
        with self._lock:
            return self._processes.runs_the_same(pid)

    def drop(self, pid: int) -> None:
        """Stop tracing *pid* and forget what was counted."""
        with self._lock:
            self._processes.drop(pid)

    def tick(self) -> list[int]:
        """Look after all processes; return those that have replaced their program.

        So does one that has turned out to run without a GIL, which is dropped. Names new threads,
        notices deaths and checks that the numbers can be trusted. To be called a few times a
        second; whatever was missed in between is made up for.
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
                    self.forks += 1
                    self._forked.add(notice.pid)
                elif (traced := self._processes.by_pid.get(notice.pid)) is not None:
                    with self._checks.failing_alone(traced):
                        self._apply(notice, traced)
            self._processes.readings.take_spans()
            self._processes.readings.learn_stacks()
            self._processes.windows.step()
            self._processes.give_up_unanswered()
            replaced += self._look_after_due()
            self._processes.end_dead()
            self._free_children()
            if time.monotonic() >= self._settle_at_s:
                for_all_s = _SETTLE_EACH_S * len(self._processes.by_pid)
                pause_s = max(_SETTLE_S, min(for_all_s, _LONGEST_SETTLE_S))
                self._settle(self._processes.readings.read(), pause_s)
            return replaced

    def _look_after_due(self) -> list[int]:
        """Look after the processes that are due; return those that turn out to have no GIL."""
        now_s = time.monotonic()
        is_checked = now_s >= self._check_reads_s
        if is_checked:
            self._check_reads_s = now_s + _CHECK_READS_S
        without = []
        for traced in self._processes.all():
            # Asked of a thousand processes a few times a second.
            if now_s < traced.care_due_s and not (is_checked and traced.reads.stopped):
                continue
            with self._checks.failing_alone(traced):
                self._processes.look_after(traced)
                if traced.does_without_gil():
                    self.without_gil = without_gil(traced.pid, traced.target.process.python)
                    self._processes.drop(traced.pid)
                    without.append(traced.pid)
        return without

    def wait(self, timeout_s: float) -> None:
        """Wait until `tick` has something to do, *timeout_s* at the most.

        New stacks are no reason for it: they are read here, at a fraction of the cost.
        """
        until_s = min(time.monotonic() + timeout_s, self._processes.windows.due_ns / 1e9)
        if self._forked:
            until_s = min(until_s, self._free_children_s)
        self._processes.wakeups.wait(
            until_s, self._learn_stacks, lambda: self._processes.readings.stacks_at_s
        )

    def observe(self, *, is_final: bool = False) -> list[GilObservation]:
        """Return what has been counted of every process until now.

        *is_final*: nothing counts any more, and what is in flight counts as if it ended now.
        """
        with self._lock:
            # Before the tables, whose time is that of the observation: what is estimated of the
            # held time must not reach beyond it.
            processes = self._processes.all()
            answers = self._processes.held_time.sample_each(processes)
            for traced, answer in zip(processes, answers, strict=True):
                with self._checks.failing_alone(traced):
                    answer.get()
                    self._processes.note_estimates(traced)
            if is_final:
                self.probe.stop()
            raw = (
                self._processes.readings.read_whole()
                if is_final
                else self._processes.readings.read()
            )
            if self._settle(raw, _ASKED_AGAIN_S):
                # What a failed check has seen is forgotten, here and in the kernel.
                raw = self._processes.readings.read()
            self._processes.readings.note_timelines(raw)
            for traced in self._processes.all():
                with self._checks.failing_alone(traced):
                    # Not left to the next tick: until it has its role, a thread's time is in no
                    # total.
                    self._processes.read_roles(traced)
            return [
                traced.observation(
                    raw.processes.get(traced.pid, RawProcess()),
                    raw.at_ns,
                    self._processes.windows.cost(traced),
                    is_final=is_final,
                )
                for traced in self._processes.all()
            ]

    def timeline(self, pid: int) -> Timeline | None:
        """Return the waits and holds of *pid* one by one, as of the last `observe`.

        None where the probe was not asked to send them, or nothing is known of the process.
        """
        with self._lock:
            return self._processes.readings.timeline(pid)

    def moment(self, pid: int, since_ns: int = 0) -> Moment | None:
        """Return when *pid* has waited most since *since_ns*, as of the last `observe`.

        None where the probe was not asked to send what it takes, or nobody has waited.
        """
        with self._lock:
            return self._processes.readings.moment(pid, since_ns)

    def brief_releases(self, pid: int) -> tuple[BriefRelease, ...] | None:
        """Return where *pid* released the GIL for too short a time, as of the last `observe`.

        None where the probe was not asked to send what it takes.
        """
        with self._lock:
            return self._processes.readings.brief_releases(pid)

    def close(self) -> None:
        """Take the probes out of all processes."""
        with self._lock:
            self._processes.close()
        self._processes.close_samplers()
        self._closing.close()

    def _settle(self, raw: RawTotals, again_in_s: float) -> bool:
        self._settle_at_s = time.monotonic() + again_in_s
        return self._checks.settle(raw)

    def _apply(self, notice: Notice, traced: AttachedProcess) -> None:
        if notice.kind is NoticeKind.RETURN:
            self._checks.probe_returns(notice.pid)
        elif notice.kind is NoticeKind.THREAD:
            traced.want_role(notice.tid)
        elif notice.kind is NoticeKind.LOCK and not traced.ended:
            self._processes.learn_gils(traced)
        elif notice.kind is NoticeKind.WINDOW:
            self._processes.windows.learn(traced)
        elif notice.kind is NoticeKind.LONG_WAIT and not traced.ended:
            self._on_long_wait(notice.pid, notice.tid)

    def _free_children(self) -> None:
        # For all that have been forked meanwhile at once: it takes as long for many as for one.
        if self._forked and time.monotonic() >= self._free_children_s:
            self._free_children_s = time.monotonic() + _FREE_CHILDREN_S
            forked, self._forked = self._forked, set()
            self._processes.free_children(forked)

    def _learn_stacks(self) -> None:
        with self._lock:
            self._processes.readings.learn_stacks()
