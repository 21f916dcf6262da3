"""The processes that are traced: puts probes into them, and takes these out again."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable
from random import Random

from gilscope.errors import GilCodeNotFound, GilscopeError, MemoryUnanswered, NotPython
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import Target, inspect
from gilscope.gil.totals.blame import Blame
from gilscope.gil.totals.held_up import HeldUpSums
from gilscope.gil.tracing.contexts import ContextFinder
from gilscope.gil.tracing.held_time import HeldTime
from gilscope.gil.tracing.holders.sampler import HolderSampler, HolderSource
from gilscope.gil.tracing.holders.states import StateReader
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.tracing.reader import Readings
from gilscope.gil.tracing.wakeups import Wakeups
from gilscope.gil.tracing.windows import Windows
from gilscope.model.kinds import Mode
from gilscope.process.access import while_alive
from gilscope.process.breakpoints import addresses_of
from gilscope.process.memory import ProcessMemory
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.pidfd import open_pidfd
from gilscope.process.reads import ProcessReads
from gilscope.process.threads.throttling import Throttling
from gilscope.process.view import ProcessView, view_of
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.base import Instance
from gilscope.runtimes.registry import open_memory
from gilscope.runtimes.site_cache import SiteCache

__all__ = ["Attachments"]

_log = logging.getLogger(__name__)


class Attachments:
    """Each process with all that follows it, from its attachment until it is dropped."""

    def __init__(
        self,
        probe: GilProbe,
        plan: ObservationPlan,
        watch: ProcessWatch,
        cache: SiteCache,
        *,
        keep_callers: bool,
    ) -> None:
        """Trace with *probe*; *plan* says how closely, *cache* knows places of builds.

        *keep_callers*: stacks are kept as a whole, otherwise those with the same innermost frame
        are one.
        """
        self.lock = threading.RLock()
        """Whoever changes anything holds it."""
        self._probe = probe
        self._cache = cache
        self._reads_stacks = plan.reads_stacks
        self._native_stacks = plan.native_stacks
        self._keep_callers = keep_callers
        self._application = plan.application
        self._shares_probes = plan.shares_probes
        self.by_pid: dict[int, AttachedProcess] = {}
        """Those too that have ended, or whose probes were taken out."""
        self.windows = Windows(probe, plan)
        self.readings = Readings(probe, self.by_pid, plan.moments_for_s)
        self.windows.read_counts = self.readings.read
        self.wakeups = Wakeups(probe, watch)
        self.watch = watch
        self.held_time = HeldTime(plan.held_error, windows_cover_all=plan.mode is Mode.FULL)
        self._throttling = Throttling()
        self._contexts = ContextFinder(probe)
        self._holders = HolderSampler(Random(), plan.holders_cpu_share)  # noqa: S311 - of no secret

    def attach(self, pid: int, method: str | None) -> Target:
        """Begin to trace *pid* by *method*; raises what `inspect` and `GilProbe.attach` raise.

        The lock is held only while probes are placed.
        """
        if self.watch.reader.is_exhausted:
            raise MemoryUnanswered("the memory of so many processes hangs that no other is read")
        with while_alive(pid), contextlib.ExitStack() as undo:
            # Both stay bound to the program that runs now: whatever comes after it has the same
            # pid, but is not reached through them.
            pidfd = open_pidfd(pid)
            undo.callback(os.close, pidfd)
            memory = undo.enter_context(open_memory(pid))
            # From here on the program is the one whose memory is open, or the attachment fails.
            view = view_of(pid)
            target = inspect(view, self._cache, method=method)
            undo.callback(target.close)
            for file in (target.build.file, target.file):
                memory.allow(file.mapping)
            with self.lock:
                self._begin(target, view, pidfd, memory)
            undo.pop_all()
        return target

    def end(self, pid: int) -> None:
        """Take the probes out of *pid*; what was counted stays."""
        traced = self.by_pid.get(pid)
        if traced is None or traced.ended:
            return
        try:
            if not traced.reads.stopped:
                self.look_at_locks(traced)
            self.readings.learn_stacks()
        except ReadUnanswered:
            pass  # it is not trusted any more, or has ended anyway
        except Exception:  # noqa: BLE001 - it must end all the same
            _log.exception("could not read process %d a last time", pid)
        self._drop_samples(pid)
        self.windows.end(traced)
        traced.ended_ns = time.monotonic_ns()
        self._probe.detach(pid)
        self.watch.remove(traced.pidfd)
        traced.close()
        # No probe is placed in it any more, for which its file would be needed.
        traced.target.close()

    def end_dead(self) -> None:
        """Take the probes out of the processes that have ended."""
        for pid in self.watch.ended() & self.by_pid.keys():
            self.end(pid)

    def distrust(self, traced: AttachedProcess, reason: str) -> None:
        """End *traced* and forget what was counted, because of *reason*."""
        self.end(traced.pid)
        self._forget(traced.pid)
        traced.window = None
        traced.invalid = reason

    def drop(self, pid: int) -> None:
        """End *pid*, and forget what was counted and that it was ever there."""
        self.end(pid)
        if self.by_pid.pop(pid, None) is not None:
            self._forget(pid)

    def learn_gils(self, traced: AttachedProcess) -> None:
        """Take on the locks that *traced* has made since."""
        for cond in traced.refresh_gils():
            if traced.target.process.method == "libc":
                self._probe.add_gil(traced.pid, cond)
        self.windows.learn_locks(traced)

    def look_after(self, traced: AttachedProcess) -> None:
        """Name the threads of *traced* that are new, and find its new locks."""
        self.read_roles(traced)
        self._contexts.look(traced)
        if not (traced.gils or traced.ended):
            # It was attached before its Python was initialised.
            self.learn_gils(traced)
        if self.held_time.is_behind(traced):
            self.held_time.sample(traced)
        is_known = bool(traced.gils) and traced.is_gil_settled
        if traced.ended or (is_known and not self.held_time.is_behind(traced)):
            is_naming = traced.runtime.threads.is_wanted and not traced.ended
            traced.care_due_s = 0.0 if is_naming else self._contexts.due_s(traced)

    def give_up_unanswered(self) -> None:
        """Stop reading the processes whose memory keeps a sampler waiting."""
        pid = self.held_time.unanswered()
        if pid is not None and pid in self.by_pid:
            self.by_pid[pid].reads.give_up()
        self._holders.give_up_unanswered()

    def read_roles(self, traced: AttachedProcess) -> None:
        """Name the threads of *traced* that are new; raises ReadUnanswered."""
        if traced.runtime.threads.is_wanted:
            traced.reads(traced.runtime.threads.read_wanted)

    def look_at_locks(self, traced: AttachedProcess) -> None:
        """Take over what is estimated of the held time of *traced*."""
        self.held_time.sample(traced)
        self.note_estimates(traced)

    def note_estimates(self, traced: AttachedProcess) -> None:
        """Take over what else is estimated of *traced*, whose locks have been sampled."""
        traced.holder_samples = self._holders.figures(traced.pid) or traced.holder_samples
        traced.check_interval = traced.runtime.check_interval() or traced.check_interval

    @property
    def sampling_cpu_ns(self) -> int:
        """CPU time that sampling locks and their holders has taken."""
        return self.held_time.cpu_ns + self._holders.cpu_ns

    def close_samplers(self) -> None:
        """Sample nothing any more."""
        self.held_time.close()
        self._holders.close()

    def all(self) -> tuple[AttachedProcess, ...]:
        """Return them as they are now: some may end, or be attached to again, meanwhile."""
        return tuple(self.by_pid.values())

    def runs_the_same(self, pid: int) -> bool:
        """Return whether *pid* is traced and still runs the program that was attached."""
        traced = self.by_pid.get(pid)
        return traced is not None and not traced.ended and traced.runs_the_same()

    def close(self) -> None:
        """Take the probes out of all processes."""
        for pid in tuple(self.by_pid):
            self.end(pid)

    def _begin(self, target: Target, view: ProcessView, pidfd: int, memory: ProcessMemory) -> None:
        """Put the probes into *target*, found in *view*, and keep *pidfd* and *memory* of it.

        Raises NotPython, and what `GilProbe.attach` raises; the two are the caller's then.
        """
        pid = view.pid
        with contextlib.ExitStack() as undo:
            self.end(pid)
            self.readings.forget_timeline(pid)
            reads = ProcessReads(self.watch.reader, pid, memory)
            runtime = target.build.instance(memory, reads)
            traced = AttachedProcess(
                pid=pid,
                target=target,
                memory=memory,
                runtime=runtime,
                reads=reads,
                blame=self._blame(runtime),
                held_up=HeldUpSums(self._application),
                keeper_losses=self._probe.keeper_losses,
                shares_probes=self._shares_probes and target.is_of_its_file,
                pidfd=pidfd,
                since_ns=time.monotonic_ns(),
                throttling=self._throttling,
                throttled_before_ns=self._throttling.of(pid),
            )
            traced.refresh_gils()
            undo.callback(self._take_out, traced)
            self._place_probes(traced)
            self._find_breakpoints(traced, view)
            if not traced.runs_the_same():
                raise NotPython(
                    f"process {pid} changed while it was being attached",
                    remedy="It may be replacing its program: try again.",
                )
            self.watch.add(pidfd, pid)
            undo.callback(self.watch.remove, pidfd)
            # Nobody samples at memory any more that the caller closes if this fails.
            undo.callback(self._drop_samples, pid)
            self.look_at_locks(traced)
            self._sample_holders(traced)
            self.by_pid[pid] = traced
            undo.pop_all()

    def _blame(self, runtime: Instance) -> Blame | None:
        if not self._reads_stacks:
            return None
        return Blame(runtime.code(), self._application, keep_callers=self._keep_callers)

    def _sample_holders(self, traced: AttachedProcess) -> None:
        if traced.blame is not None:
            holders, pid = traced.runtime.holders, traced.pid
            machine = traced.target.build.file.image().architecture
            registers = machine.sampled_registers if self._native_stacks else None
            source = HolderSource(
                holders,
                StateReader(pid, holders, machine.call_names, registers),
                lambda: list(traced.gils),
                lambda cond: round(self._probe.waiting(pid, cond) * traced.scaled.weight),
                traced.blame.kept,
                traced.reads,
            )
            self._holders.add(pid, source)

    def _place_probes(self, traced: AttachedProcess) -> None:
        try:
            # No wait that is counted, and no held time, can be longer than the time from then on.
            traced.since_ns = self._probe.attach(traced.pid, traced.plan())
            # Of a file whose probes were split, everybody has his own.
            traced.shares_probes = bool(self._probe.shares_with(traced.pid))
            self.windows.begin(traced)
            self.held_time.begin(traced)
        except (FileNotFoundError, ProcessLookupError) as error:
            raise NotPython(f"process {traced.pid} ended while it was being attached") from error

    def _find_breakpoints(self, traced: AttachedProcess, view: ProcessView) -> None:
        """Note where the probes are; raises GilCodeNotFound where they are not."""
        target, mappings = traced.target, view.mappings
        file = target.file.mapping
        traced.breakpoints = addresses_of(
            file, mappings, [point.offset for point in target.hookpoints]
        )
        missing = traced.missing_breakpoint()
        if missing is not None and traced.shares_probes:
            self._probe.put_back(traced.pid, traced.hooks(target.hookpoints))
            missing = traced.missing_breakpoint()
        if missing is not None or not traced.breakpoints:
            where = "" if missing is None else f" at {missing:#x}"
            raise GilCodeNotFound(
                f"the kernel has put no breakpoint into process {traced.pid}{where}, though it "
                f"took the probes in {file.path}",
                remedy="Its main thread may have ended, which the kernel's probes need, or it may "
                "run another copy of that file. Restart the process.",
            )
        traced.window_breakpoints = addresses_of(
            file, mappings, [point.offset for point in (*target.acquires, *target.releases)]
        )

    def free_children(self, pids: Iterable[int]) -> None:
        """Take the probes of *pids* out of the processes that they have forked.

        Those have a copy of the memory, with the breakpoints in it, but are not traced: each trap
        would cost them, and count for nobody.
        """
        for pid in pids:
            traced = self.by_pid.get(pid)
            if traced is None or traced.ended:
                continue
            target, window = traced.target, traced.window
            # Those that all share are wanted in the children as well.
            points = () if traced.shares_probes else target.hookpoints
            if window is not None and (window.is_open or window.is_lingering):
                points = (*points, *target.acquires, *target.releases)
            if not points:
                continue
            try:
                self._probe.leave_to_the_attached(traced.hooks(points))
            except (GilscopeError, OSError) as error:
                _log.debug("forks of process %d keep its probes for now: %s", pid, error)

    def _drop_samples(self, pid: int) -> None:
        self.held_time.drop(pid)
        self._holders.drop(pid)

    def _take_out(self, traced: AttachedProcess) -> None:
        self.windows.end(traced)
        self._probe.detach(traced.pid)
        self._probe.forget(traced.pid)
        self.windows.forget(traced.pid)

    def _forget(self, pid: int) -> None:
        self._contexts.forget(pid)
        self._probe.forget(pid)
        self.windows.forget(pid)
        self.readings.forget_timeline(pid)
