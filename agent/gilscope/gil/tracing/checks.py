"""Checks whether the figures of attached processes can be trusted, and fixes what can be."""

import contextlib
import logging
from collections.abc import Iterator

from gilscope.errors import GilscopeError
from gilscope.gil.probes.libc_method import ReturnSite, hook_for
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.totals.process_totals import has_exited, holders
from gilscope.gil.totals.raw import RawProcess, RawTotals
from gilscope.gil.tracing.attachments import Attachments
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.reads import read_of_each
from gilscope.process.view import view_of
from gilscope.runtimes.registry import detect

__all__ = ["Checks"]

_log = logging.getLogger(__name__)

_ANOTHER_RUNS = "another Python of the process runs than the one that was attached to"


class Checks:
    """What is done now and then for each of *processes*. Not for several threads at a time."""

    def __init__(
        self, probe: GilProbe, processes: Attachments, method: str | None, *, keep_threads: bool
    ) -> None:
        """Attach again by *method* what has to be, by the other one where that fails.

        With *keep_threads* every dead thread stays listed by itself.
        """
        self._probe = probe
        self._processes = processes
        self._method = method
        self._keep_threads = keep_threads

    def settle(self, raw: RawTotals) -> bool:
        """Check and tidy up what *raw* holds; return whether a process lost its credit."""
        has_failed = False
        losses = self._probe.keeper_losses
        gone = self._whose_probes_have_gone()
        for pid, traced in list(self._processes.by_pid.items()):
            process = raw.processes.get(pid, RawProcess())
            if traced.invalid:
                continue
            # Another process may have had those put in place since that they share.
            have_shared_gone = traced.shares_probes and traced.keeper_losses != losses
            if (have_shared_gone and not traced.ended) or pid in gone:
                has_failed = True
                # Asked once more: it may have been lost since the first process was looked at.
                is_keeper_lost = traced.keeper_losses != self._probe.keeper_losses
                self._renew(traced, is_keeper_lost=is_keeper_lost)
                continue
            reason = ""
            with self.failing_alone(traced):
                reason = self._look_after(traced, process, raw.at_ns)
            has_failed |= bool(traced.invalid)
            if reason:
                has_failed = True
                self._fail(traced, reason)
        return has_failed

    def _look_after(self, traced: AttachedProcess, process: RawProcess, now_ns: int) -> str:
        if not traced.ended:
            # The notices of these may have been lost.
            if not traced.runs_the_same():
                self._processes.end(traced.pid)
            elif traced.target.process.method == "libc":
                self._processes.learn_gils(traced)
                self.probe_returns(traced.pid)
            elif not traced.gils:
                # Python was not initialised yet, or was just about to be.
                self._processes.learn_gils(traced)
                if not traced.gils and self._runs_another(traced):
                    return _ANOTHER_RUNS
            else:
                self._processes.windows.learn_locks(traced)
        reason = traced.invalid or traced.reason_to_distrust(process)
        if not reason:
            for tid in holders(process):
                traced.want_role(tid)
            for tid, record in process.threads.items():
                traced.learn_role(tid, record)
                traced.want_role(tid)
                if has_exited(record):
                    # A dead thread's record is final. It leaves the map, which never fills up so.
                    self._probe.forget_thread_of(traced.pid, tid)
                    traced.retire(tid, process, now_ns, is_listed=self._keep_threads)
        return reason

    def _fail(self, traced: AttachedProcess, reason: str) -> None:
        self._processes.distrust(traced, reason)
        if reason == _ANOTHER_RUNS:
            with contextlib.suppress(GilscopeError, OSError):
                self._processes.attach(traced.pid, self._method)
        elif traced.reads.stopped:
            pass  # whichever way it is attached, it has to be read
        elif traced.target.process.method == "sites" and self._method is None:
            with contextlib.suppress(GilscopeError, OSError):
                self._processes.attach(traced.pid, "libc")

    def _whose_probes_have_gone(self) -> set[int]:
        """Return the processes of which a probe is not in their memory any more."""
        asked = [each for each in self._processes.all() if not (each.ended or each.invalid)]
        answers = read_of_each([(each.reads, each.breakpoint_check()) for each in asked])
        gone = set()
        for traced, answer in zip(asked, answers, strict=True):
            # One that has ended, or replaced its program, there will be notice of.
            with contextlib.suppress(OSError):
                if answer.get() is not None:
                    gone.add(traced.pid)
        return gone

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
            self._processes.attach(traced.pid, self._method)
        except (GilscopeError, OSError) as error:
            self._processes.distrust(traced, f"its probes have gone, and were refused: {error}")
            return
        self._processes.by_pid[traced.pid].renewals = traced.renewals + 1

    def _runs_another(self, traced: AttachedProcess) -> bool:
        """Return whether the process has come to run another Python than the one attached to."""
        known = traced.target.build
        try:
            with contextlib.closing(detect(view_of(traced.pid))) as found:
                same = (found.file.identity, found.load_bias) == (
                    known.file.identity,
                    known.load_bias,
                )
        except (GilscopeError, OSError):
            return False
        return not same

    def probe_returns(self, pid: int) -> None:
        """Place probes where calls return to that *pid* has made: the libc method learns them."""
        traced = self._processes.by_pid.get(pid)
        if traced is None or traced.ended:
            return
        for site in self._probe.new_return_sites(pid):
            self._probe_return(traced, site)

    def _probe_return(self, traced: AttachedProcess, site: ReturnSite) -> None:
        try:
            with hook_for(traced.pid, site) as hook:
                self._probe.add_hooks(traced.pid, [hook])
        except (FileNotFoundError, ProcessLookupError):
            return  # the process has just ended
        except (GilscopeError, OSError) as error:
            self._fail(traced, f"cannot probe the return at {site.address:#x}: {error}")
            return
        self._probe.mark_probed(traced.pid, site)

    @contextlib.contextmanager
    def failing_alone(self, traced: AttachedProcess) -> Iterator[None]:
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
