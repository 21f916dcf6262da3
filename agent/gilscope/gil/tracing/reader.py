"""Reads what the probes have counted of all traced processes, so that its parts agree."""

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.totals.blame import Blame
from gilscope.gil.totals.brief_releases import BriefReleases
from gilscope.gil.totals.process_totals import waiting_since_ns
from gilscope.gil.totals.raw import RawProcess, RawStack, RawTotals
from gilscope.gil.totals.timeline import MOST_OF_MOMENTS, Timelines
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import BriefRelease
from gilscope.model.timeline import Moment, Timeline
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.text.units import NS_PER_S

__all__ = ["Readings"]

_MOST_READINGS = 20
"""Until the tables agree; if they never do, something was lost, which is counted."""


class Readings:
    """Takes tables, stacks and spans in the order in which they make sense."""

    def __init__(
        self,
        probe: GilProbe,
        traced: Mapping[int, AttachedProcess],
        moments_for_s: int | None = None,
    ) -> None:
        """Read what *probe* holds of *traced*, by pid.

        The worst moment is that of the last *moments_for_s*; None: of all the time.
        """
        self._probe = probe
        self._traced = traced
        self._brief_releases = BriefReleases()
        self._timelines = (
            Timelines()
            if probe.spans_a_second is None
            else Timelines(
                MOST_OF_MOMENTS,
                a_second=probe.spans_a_second,
                for_ns=None if moments_for_s is None else moments_for_s * NS_PER_S,
            )
        )
        self.stacks_at_s = 0.0
        """When the last new stack was read, on the monotonic clock."""

    def learn_stacks(self) -> None:
        """Take over the stacks that the probes have met for the first time."""
        # Names are read at once: the code may be gone soon, and the process too.
        new: dict[int, list[RawStack]] = {}
        for stack in self._probe.blame.new_stacks():
            self.stacks_at_s = time.monotonic()
            new.setdefault(stack.pid, []).append(stack)
        for pid, stacks in new.items():
            traced = self._traced.get(pid)
            if traced is not None and traced.blame is not None:
                # What does not answer is not traced any more from the next tick on.
                with contextlib.suppress(ReadUnanswered):
                    traced.reads(partial(_learn, traced.blame, stacks))

    def take_spans(self) -> None:
        """Take over the waits and holds that have been sent one by one."""
        for span in self._probe.spans():
            # Of a process that has been dropped, some may still be in the ring.
            if span["tgid"] in self._traced:
                self._timelines.add(span)
                self._brief_releases.add(span)

    def read(self) -> RawTotals:
        """Return what the tables hold now; who is blamed in it is known."""
        windows = {
            pid: traced.window for pid, traced in self._traced.items() if traced.window is not None
        }
        raw = self._probe.read(windows)
        # After the edges: a stack is sent before it is in any.
        self.learn_stacks()
        for pid in raw.processes:
            traced = self._traced.get(pid)
            if traced is not None and traced.scaled.is_used:
                raw.processes[pid] = _as_all(traced, raw.processes[pid])
        for pid, process in raw.processes.items():
            traced = self._traced.get(pid)
            if traced is not None and traced.blame is not None:
                traced.blame.keep(process.taken)
                traced.requests.keep(process.taken, traced.blame.stack)
                surplus = traced.blame.surplus(process)
                if surplus:
                    self._probe.blame.send_again(pid, surplus)
        return raw

    def read_whole(self) -> RawTotals:
        """Return totals of which no wait is in one table already and in another one not yet."""
        best, least_ns = self.read(), None
        for _ in range(_MOST_READINGS):
            raw = self.read()
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

    def note_timelines(self, raw: RawTotals) -> None:
        """Let the timelines reach up to *raw*, with what is in flight too."""
        if not self._probe.sends_spans:
            return
        for pid, process in raw.processes.items():
            if pid in self._traced:
                self._timelines.note(pid, process, raw.at_ns)
        # After what is in flight: what has ended in between is found in both.
        self.take_spans()

    def timeline(self, pid: int) -> Timeline | None:
        """Return the waits and holds of *pid* one by one, as far as they have been noted.

        None where the probe was not asked to send them, or nothing is known of the process.
        """
        traced = self._traced.get(pid)
        if traced is None or not self._probe.sends_all_spans:
            return None
        return self._timelines.timeline(pid, traced.gils, traced.stack)

    def moment(self, pid: int, since_ns: int = 0) -> Moment | None:
        """Return when *pid* has waited most since *since_ns*.

        None where that is not known, or it has not waited.
        """
        traced = self._traced.get(pid)
        if traced is None or not self._probe.sends_spans:
            return None
        return self._timelines.moment(pid, traced.gils, traced.stack, since_ns)

    def brief_releases(self, pid: int) -> tuple[BriefRelease, ...] | None:
        """Return where *pid* released the GIL for too short a time; None: that is not seen."""
        traced = self._traced.get(pid)
        if traced is None or not self._probe.sends_spans:
            return None
        return self._brief_releases.of(pid, traced.stack)

    def forget_timeline(self, pid: int) -> None:
        """Give up the waits and holds of *pid*."""
        self._timelines.forget(pid)
        self._brief_releases.forget(pid)


def _as_all(traced: AttachedProcess, process: RawProcess) -> RawProcess:
    """Return *process*, whose waits are seen in windows, with what these stand for."""
    window = traced.wait_window
    if window is not None:
        threads = {tid: window.followed(tid, record) for tid, record in process.threads.items()}
        waiting = {
            tid: waiting
            for tid, waiting in process.waiting.items()
            if waiting_since_ns(threads[tid])
        }
        process = replace(process, threads=threads, waiting=waiting)
    return traced.scaled.scale(process)


def _learn(blame: Blame, stacks: Iterable[RawStack]) -> None:
    for stack in stacks:
        blame.learn(stack)
