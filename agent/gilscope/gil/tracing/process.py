"""One traced process: what is known of it, and whether its figures can be trusted."""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.gil.abi import Loss
from gilscope.gil.probes.plan import Plan
from gilscope.gil.probes.window import Window
from gilscope.gil.target import Hookpoint, Target
from gilscope.gil.totals.blame import Blame
from gilscope.gil.totals.dead_threads import DeadThreads
from gilscope.gil.totals.held_up import HeldUpSums
from gilscope.gil.totals.process_totals import (
    blamed_ns,
    has_exited,
    process_totals,
    thread_totals,
    unknown_gils,
)
from gilscope.gil.totals.raw import RawLock, RawProcess
from gilscope.gil.totals.scaled import ScaledCounts
from gilscope.gil.tracing.requests import PublishedRequests
from gilscope.gil.waits.window import WaitWindow
from gilscope.model.gil import (
    ENDED_INTERPRETER,
    Gil,
    GilObservation,
    GilTotals,
    HolderSamples,
    Process,
    ProcessTotals,
    TracingCost,
)
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.process.attachment import Attachment
from gilscope.process.breakpoints import first_missing
from gilscope.process.remote_read import LimitExceeded, TornRead
from gilscope.process.threads.throttling import Throttling
from gilscope.runtimes.base import Instance
from gilscope.runtimes.cpython.code.gil_request import asked_for_gil
from gilscope.values import Record, dataclass

__all__ = ["AttachedProcess"]

_UNLISTED_S = 5.0
"""Timeout for the GILs of a process, which are unreadable while it starts."""

_NO_GIL_S = 10.0
"""Timeout for the first one of a process, before which nothing is counted."""

_FEW = 3
_MISSED_SHARE = 0.001

_MOST_GILS = 256
"""That are listed."""

_MOST_DEAD_THREADS = 10_000
"""That are listed one by one; further ones are added up by role."""


@dataclass(slots=True, kw_only=True)
class AttachedProcess(Attachment):
    """One process whose GIL is traced. Its breakpoints are those on the contended path."""

    target: Target
    runtime: Instance
    blame: Blame | None = None
    """None: stacks are not read."""
    held_up: HeldUpSums = field(default_factory=HeldUpSums)
    gils: dict[int, Gil] = field(default_factory=dict)
    """By address of ``cond``."""
    dead_threads: DeadThreads = field(default_factory=DeadThreads)
    shares_probes: bool = False
    """Whether those on the contended path are in all processes that run the same file."""
    keeper_losses: int = 0
    """How many keepers of probes had been lost when it was attached."""
    window: Window | None = None
    """None: holds are not seen."""
    wait_window: WaitWindow | None = None
    """None: all waits are seen."""
    waits_given_up: int = 0
    """How many that counted were not followed to their end."""
    windows_missed: int = 0
    """How many windows of waits did not take place."""
    scaled: ScaledCounts = field(default_factory=ScaledCounts)
    """What makes those in windows stand for all."""
    sampled_held_ns: dict[int, int] = field(default_factory=dict)
    """Held time outside of windows, estimated, by address of ``cond``."""
    holder_samples: HolderSamples | None = None
    throttling: Throttling = field(default_factory=Throttling)
    """Whom to ask for how long its cgroup was throttled."""
    throttled_before_ns: int | None = None
    """Time for which its cgroup had been throttled before it was attached."""
    throttled_ns: int | None = None
    window_breakpoints: Sequence[int] = ()
    """Where those of windows are, while one is open."""
    check_interval: int | None = None
    """Bytecodes after which a thread gives the lock away by itself, when it was last read."""
    requests: PublishedRequests = field(default_factory=PublishedRequests)
    renewals: int = 0
    """How often it was attached again because its probes had gone."""

    is_gil_settled: bool = False
    """Whether it is known to have a GIL: a free-threaded build says so when it is initialised."""
    gil_needed_by: str | None = None
    """The module for which a free-threaded build has it, as far as is known."""
    is_gil_asked_for: bool = False
    """Whether a free-threaded build was asked to have it, from its start on."""
    care_due_s: float = 0.0
    """Nothing has to be looked after before. A new thread or lock makes it due at once."""
    over_limit: str = ""
    """What there was too much of to be read, in words."""
    unlisted_since_s: float = 0.0
    """Since when threads wait for locks while no GIL of the process can be read; 0: not so."""

    def missing_breakpoint(self) -> int | None:
        """Return the address of a probe that is not in place any more, None if all are.

        Those of a window too while one is open. Raises OSError where the process runs another
        program, or does not answer.
        """
        return self.reads(self.breakpoint_check())

    def breakpoint_check(self) -> Callable[[], int | None]:
        """Return what finds that out, as of now: it reads the memory, and may wait."""
        window = self.window
        is_out = self.wait_window is not None and not self.wait_window.is_placed
        addresses = () if is_out else self.breakpoints
        if window is not None and window.is_open and not window.has_used_up:
            addresses = (*addresses, *self.window_breakpoints)
        return partial(first_missing, self.memory, addresses)

    def plan(self) -> Plan:
        """Return how to probe the contended path of the process."""
        target = self.target
        return Plan(
            hooks=self.hooks(target.hookpoints),
            load_bias=target.build.load_bias,
            build_id=target.build.build_id,
            callers=target.sites.callers if target.sites else (),
            conds=tuple(sorted(self.gils, key=lambda cond: self.gils[cond].interpreter_id)),
            waits_only_on_conds=target.process.method == "libc",
            lock_parts=self.runtime.lock_parts,
            frame_walk=None if self.blame is None else self.runtime.frame_walk(),
            shared_file=target.file.identity if self.shares_probes else None,
            records=self.runtime.probe_records(),
        )

    def stack(self, stack_id: int) -> Stack:
        """Return the stack that the probes know by *stack_id*."""
        return UNKNOWN_STACK if self.blame is None else self.blame.stack(stack_id)

    def unblamed_ns(self, process: RawProcess, now_ns: int) -> int:
        """Return by how much threads have lost more, or less, than is attributed to somebody."""
        if self.blame is None or self.invalid:
            return 0
        now_ns = now_ns if self.ended_ns is None else min(now_ns, self.ended_ns)
        lost_ns = sum(thread.wait_ns for thread in self._totals(process, now_ns, None).threads)
        unblamed_ns = abs(lost_ns - self.blame.kept_ns - blamed_ns(process, now_ns))
        # Each figure that is scaled is rounded by itself.
        rounded = len(process.threads) + len(process.edges) if self.scaled.is_used else 0
        return max(0, unblamed_ns - len(Kind) * rounded)

    def hooks(self, points: Iterable[Hookpoint]) -> tuple[Hook, ...]:
        """Return *points* of the file with the GIL's code, ready to be placed."""
        path = self.target.file.path
        return tuple(Hook(point.program, path, point.offset) for point in points)

    def want_role(self, tid: int) -> None:
        """Have the thread *tid* named, if it is not yet."""
        self.runtime.threads.want(tid)
        if self.runtime.threads.is_wanted:
            self.care_due_s = 0.0

    def refresh_gils(self) -> list[int]:
        """Look for new locks, and return the addresses of those that were found."""
        known = set(self.gils)
        try:
            for gil in self.reads(self.runtime.gils):
                # A program may make interpreters without end. Where one that is not listed has its
                # own lock, waits for that are counted as those of an interpreter that has ended.
                if len(self.gils) >= _MOST_GILS:
                    break
                # An interpreter may get the memory of one that has ended. Their lock keeps its
                # name: what was counted never moves to another label.
                self.gils.setdefault(gil.cond, gil)
                self.care_due_s = 0.0
        except LimitExceeded as error:
            self.over_limit = str(error)
        except (TornRead, OSError):
            pass  # it is being made, or has gone
        return [cond for cond in self.gils if cond not in known]

    def does_without_gil(self) -> bool:
        """Return whether it has turned out to run without its GIL since it was attached."""
        if self.is_gil_settled or self.ended or not self.gils:
            return False
        try:
            is_off = self.reads(self.runtime.is_gil_off)
        except (TornRead, OSError):
            return False  # it has gone, or is asked again
        self.is_gil_settled = is_off is False
        if self.is_gil_settled:
            self._learn_why_gil_is_on()
        return bool(is_off)

    def _learn_why_gil_is_on(self) -> None:
        with contextlib.suppress(TornRead, LimitExceeded, OSError):
            needing = self.reads(self.runtime.modules_that_need_gil)
            self.gil_needed_by = needing[0] if needing else None
        if self.target.process.python.endswith("t"):
            with contextlib.suppress(OSError):
                self.is_gil_asked_for = self.reads(lambda: asked_for_gil(self.pid))

    def learn_role(self, tid: int, record: Record) -> None:
        """Take the role of a thread from a stack that it has waited in, if there is one."""
        if self.blame is not None and tid not in self.runtime.threads.known:
            frames = self.blame.outermost(record["stack"])
            if frames:
                self.runtime.threads.learn(tid, frames)

    def retire(self, tid: int, process: RawProcess, now_ns: int, *, is_listed: bool) -> None:
        """Keep the final figures of thread *tid*, whose record is about to go.

        With *is_listed* it stays listed by itself, else it is added to the others of its role.
        """
        locks = None if self.window is None else process.locks
        role = self.runtime.threads.final(tid)
        dead = thread_totals(tid, process.threads[tid], role, now_ns, locks)
        self.runtime.threads.forget(tid)
        if self.window is not None:
            self.window.forget_thread(tid)
        if self.wait_window is not None:
            self.wait_window.forget_thread(tid)
        if is_listed and len(self.dead_threads) < _MOST_DEAD_THREADS:
            self.dead_threads.keep(dead)
        else:
            self.dead_threads.add(dead)

    def reason_to_distrust(self, process: RawProcess) -> str:
        """Return why what the maps hold of this process cannot be right; empty: it can.

        Also where it cannot be told, or costs too much.
        """
        unreadable = self._unreadable()
        if unreadable:
            return unreadable
        invalid = sorted(
            loss.value
            for loss, count in process.lost.items()
            if loss.is_invalid and not self._may_be_missed(loss, count, process)
        )
        if invalid:
            return f"what the probes saw is not a GIL's ({', '.join(invalid)})"
        unknown = unknown_gils(process, self.gils)
        if unknown and self.ended and not self.gils:
            # It ended before anybody could ask it. One lock is the main interpreter's.
            if len(unknown) == 1:
                self.gils[unknown[0]] = Gil(cond=unknown[0], interpreter_id=0)
        elif unknown and not self.ended:
            self.refresh_gils()
            return self._judge_unknown(unknown_gils(process, self.gils))
        return ""

    def _unreadable(self) -> str:
        if self.ended:
            return ""
        if self.reads.stopped:
            return self.reads.stopped
        over_limit = self.over_limit or self.runtime.threads.over_limit
        is_blind = self.target.process.method == "libc" and not self.gils
        if not over_limit and is_blind:
            # This method counts waits for the GILs that it knows, and nothing else.
            seen_ns = time.monotonic_ns() - self.since_ns
            if seen_ns > _NO_GIL_S * 1_000_000_000:
                return f"no GIL of the process could be read for {_NO_GIL_S:g} s"
        return over_limit

    def observation(
        self, process: RawProcess, now_ns: int, cost: TracingCost | None, *, is_final: bool = False
    ) -> GilObservation:
        """Return the process as a report or a scrape shows it, at *now_ns* or at its end.

        *is_final*: no later read, so nothing has to be left for later.
        """
        now_ns = now_ns if self.ended_ns is None else min(now_ns, self.ended_ns)
        if self.invalid:
            totals = ProcessTotals(now_ns, (), (), {})
        else:
            if is_final:
                self.runtime.threads.settle()
            totals = self._totals(process, now_ns, self._with_unseen_waits(cost, now_ns))
            if self.blame is None:
                totals = replace(totals, has_stacks=False)
            else:
                edges = self.blame.edges(process, now_ns, is_final=is_final)
                totals = replace(
                    totals,
                    edges=edges,
                    held_up=self.held_up.enter(edges, self.holder_samples),
                    slow_drops=self.blame.slow_drops(process, now_ns, is_final=is_final),
                    holder_samples=self.holder_samples,
                    traces=self.requests.traces(process, self.stack),
                )
        return GilObservation(
            process=self._process(),
            since_ns=self.since_ns,
            totals=totals,
            invalid=self.invalid,
            ended=self.ended,
        )

    def _with_unseen_waits(self, cost: TracingCost | None, now_ns: int) -> TracingCost | None:
        if cost is None or self.wait_window is None:
            return cost
        # As of the same time as all else: what is told of it grows, and never faster than time.
        return replace(cost, waits_unseen_ns=self.wait_window.unseen_ns(now_ns))

    def _process(self) -> Process:
        process, service = self.target.process, self.requests.service
        if service is None and self.gil_needed_by is None and not self.is_gil_asked_for:
            return process
        return replace(
            process,
            service=service,
            gil_needed_by=self.gil_needed_by,
            is_gil_asked_for=self.is_gil_asked_for,
        )

    def _totals(self, process: RawProcess, now_ns: int, cost: TracingCost | None) -> ProcessTotals:
        alive = replace(
            process,
            locks=self._locks(process),
            threads={
                tid: record for tid, record in process.threads.items() if not has_exited(record)
            },
            lost=self._losses(process),
        )
        sees_holds = self.window is not None
        totals = process_totals(
            alive, now_ns, self.gils, self.runtime.threads.known, sees_holds=sees_holds
        )
        return replace(
            totals,
            gils=tuple(self._with_held_time(gil) for gil in totals.gils),
            threads=(*totals.threads, *self.dead_threads),
            check_interval=self.check_interval,
            throttled_ns=self._throttled_ns(),
            observed_ns=None if self.window is None else self.window.observed_ns(now_ns),
            cost=cost,
        )

    def _throttled_ns(self) -> int | None:
        now_ns = None if self.ended else self.throttling.of(self.pid)
        if now_ns is not None and self.throttled_before_ns is not None:
            self.throttled_ns = max(0, now_ns - self.throttled_before_ns)
        return self.throttled_ns

    def _may_be_missed(self, loss: Loss, count: int, process: RawProcess) -> bool:
        # The kernel leaves a program out, once in millions of times, when an interrupted one is
        # about on the same processor. Without the release, the next holder looks like an intruder.
        holds = sum(sum(lock.record["hold_slots"]) for lock in process.locks.values())
        return loss is Loss.INVALID_HOLDER and count <= _FEW + holds * _MISSED_SHARE

    def _locks(self, process: RawProcess) -> dict[int, RawLock]:
        if not self.ended:
            return process.locks
        # Of a process that was killed, the probes may not have seen the last hold's end.
        return {cond: lock.finished() for cond, lock in process.locks.items()}

    def _with_held_time(self, gil: GilTotals) -> GilTotals:
        in_windows_ns = None if gil.holds is None else gil.holds.held_ns
        outside_ns = self.sampled_held_ns.get(gil.gil.cond)
        if in_windows_ns is None and outside_ns is None:
            return gil
        return replace(gil, held_ns=(in_windows_ns or 0) + (outside_ns or 0))

    def _losses(self, process: RawProcess) -> dict[Loss, int]:
        unknown = 0 if self.window is None else self.window.unknown_takes()
        known = process.lost.get(Loss.LOCK_UNKNOWN, 0)
        more = {
            Loss.LOCK_UNKNOWN: known + unknown,
            Loss.PROBES_GONE: self.renewals,
            Loss.UNFOLLOWED: self.waits_given_up,
            Loss.WINDOW: self.windows_missed,
        }
        return {**process.lost, **{loss: count for loss, count in more.items() if count}}

    def _judge_unknown(self, unknown: Sequence[int]) -> str:
        if not unknown:
            self.unlisted_since_s = 0.0
        elif not self.gils:
            now_s = time.monotonic()
            self.unlisted_since_s = self.unlisted_since_s or now_s
            if now_s - self.unlisted_since_s > _UNLISTED_S:
                return "threads use a lock, but no GIL of the process can be read"
        elif self.runtime.has_own_gils:
            # Every interpreter may have its own, and this one has ended since. The probe has seen
            # its mutex, its state and its interval to be a GIL's.
            self.gils.update({cond: Gil(cond, ENDED_INTERPRETER) for cond in unknown})
        else:
            known = ", ".join(f"{cond:#x}" for cond in self.gils)
            return (
                f"threads use a lock at {unknown[0]:#x}, but the GIL of this process is at {known}"
            )
        return ""
