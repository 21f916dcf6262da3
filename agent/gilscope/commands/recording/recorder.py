"""What `record` keeps of the processes that it traces, and makes its recordings of in the end."""

import argparse
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from gilscope.commands.options import chosen_application
from gilscope.commands.outputs import wants_snapshots
from gilscope.commands.progress import Progress
from gilscope.model.gil import (
    BriefRelease,
    GilObservation,
    ProcessTotals,
    Recording,
    Refusal,
)
from gilscope.model.kinds import Mode
from gilscope.model.locks import LockObservation, LockProcess, LockRecording
from gilscope.model.observation import AnyProcess, Observation
from gilscope.model.session import Session
from gilscope.model.transactions import StmObservation, StmProcess, StmRecording
from gilscope.naming.python import python_words
from gilscope.naming.transaction_words import LIBRARY_WORDS
from gilscope.process.files.source_files import SourceLines
from gilscope.reports.gil.heat import hottest
from gilscope.series.snapshots import SnapshotSeries
from gilscope.text.printable import printable
from gilscope.tracing.tracer import Tracer

__all__ = ["Recorder"]

_MOST_TOLD = 20
"""Lines about children; a build or a pool of processes may have thousands."""
_MOST_ENDED = 400
"""Processes that have ended, and whose figures are kept; and programs that processes had before."""


class _Traced:
    """One process, or one program of it."""

    def __init__(self, pid: int, began_ns: int, *, has_snapshots: bool) -> None:
        self.began_ns = began_ns
        self.sources = SourceLines(pid)
        self.snapshots = SnapshotSeries(began_ns) if has_snapshots else None


class Recorder:
    """Gets to know each process that is traced, by any thread, and reads them all in the end."""

    def __init__(self, arguments: argparse.Namespace, tracer: Tracer) -> None:
        """Report as *arguments* say of what *tracer* traces."""
        self.on_first: Callable[[], None] = lambda: None
        """Called when something is traced, before that is said."""
        self._progress = Progress("Recording")
        self._arguments = arguments
        self._tracer = tracer
        self._application = chosen_application(arguments)
        self._has_snapshots = wants_snapshots(arguments.outputs or ())
        self._began_ns = time.monotonic_ns()
        self._lock = threading.Lock()
        self._traced: dict[int, _Traced] = {}
        self._told = 0
        self._finished: list[Recording | StmRecording | LockRecording] = []
        self._left_out = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.wipe()
        with self._lock:
            for traced in self._traced.values():
                traced.sources.close()

    @property
    def has_any(self) -> bool:
        """Whether anything has been traced so far."""
        return self._told > 0

    def add(self, process: AnyProcess) -> None:
        """Note that *process* is traced from now on, and say so."""
        with self._lock:
            self._note(process.pid)
            self._told += 1
        self.on_first()
        self._progress.wipe()
        if self._told <= _MOST_TOLD:
            locks = self._tracer.locks
            beside = " and its locks" if locks is not None and process.pid in locks.pids else ""
            print(f"Tracing {_what_is_traced(process, beside)}. Ctrl-C to end.", file=sys.stderr)
        elif self._told == _MOST_TOLD + 1:
            print("Tracing more of them, which the report names.", file=sys.stderr)

    def finish_program(self, pid: int) -> None:
        """Keep what was counted of the program that process *pid* has replaced by another one."""
        for seen in self._tracer.observe():
            # A program that has turned out to do without a GIL is traced for its locks all along.
            is_traced_on = seen.locks is not None and not seen.has_ended
            if seen.process.pid == pid and not is_traced_on:
                with self._lock:
                    self._finished.append(self._recording(seen))
                    self._forget(pid)
                    self._bound_finished()

    def tell_progress(self) -> None:
        """Say on a terminal how long it has been going."""
        self._progress.tell_time(self._arguments.duration)

    def tick(self) -> None:
        """Take snapshots that are due, and give up the oldest of too many ended processes."""
        now_ns = time.monotonic_ns()
        with self._lock:
            due = {
                pid: traced.snapshots
                for pid, traced in self._traced.items()
                if traced.snapshots is not None and traced.snapshots.is_due(now_ns)
            }
            is_full = len(self._traced) > _MOST_ENDED
        if not due and not is_full:
            return
        seen = self._tracer.observe()
        for each in seen:
            series = due.get(each.process.pid)
            if series is not None and each.gil is not None:
                series.add(each.gil)
        if is_full:
            self._give_up([each for each in seen if each.has_ended])

    def session(self, refusals: Sequence[Refusal]) -> Session:
        """Return all that was recorded; nothing may be recorded after it."""
        self._progress.wipe()
        # Reading takes seconds where there were thousands of threads, of which nothing counts.
        duration_ns = time.monotonic_ns() - self._began_ns
        seen = self._tracer.observe(is_final=True)
        with self._lock:
            recordings = [*self._finished, *map(self._recording, seen)]
        of_gil = [each for each in recordings if isinstance(each, Recording)]
        return Session(
            duration_ns,
            self._arguments.mode,
            tuple(sorted(of_gil, key=lambda each: -each.observation.totals.wait_ns)),
            tuple(each for each in recordings if isinstance(each, StmRecording)),
            tuple(refusals),
            self._left_out,
            tuple(each for each in recordings if isinstance(each, LockRecording)),
        )

    def _note(self, pid: int) -> _Traced:
        traced = _Traced(pid, time.monotonic_ns(), has_snapshots=self._has_snapshots)
        self._traced[pid] = traced
        return traced

    def _forget(self, pid: int) -> None:
        traced = self._traced.pop(pid, None)
        if traced is not None:
            traced.sources.close()

    def _give_up(self, ended: Sequence[Observation]) -> None:
        # Those that lost the least say the least, and only then those that ended first.
        by_loss = sorted(ended, key=lambda each: _lost_ns(each.gil or each.locks))
        pids = dict.fromkeys(each.process.pid for each in by_loss)
        for pid in list(pids)[: len(pids) // 2]:
            self._tracer.drop(pid)
            with self._lock:
                self._forget(pid)
                self._left_out += 1

    def _bound_finished(self) -> None:
        # As with processes.
        if len(self._finished) <= _MOST_ENDED:
            return
        lost_ns = [_lost_ns(each.observation) for each in self._finished]
        by_loss = sorted(range(len(lost_ns)), key=lost_ns.__getitem__)
        given_up = set(by_loss[: len(by_loss) // 2])
        self._finished = [each for at, each in enumerate(self._finished) if at not in given_up]
        self._left_out += len(given_up)

    def _recording(self, seen: Observation) -> Recording | StmRecording | LockRecording:
        pid = seen.process.pid
        traced = self._traced.get(pid) or self._note(pid)
        if seen.transactions is not None:
            return _of_transactions(seen.transactions, traced)
        if seen.locks is not None:
            return self._of_locks(seen.locks, traced)
        assert seen.gil is not None  # noqa: S101 - an observation has one of them
        return self._of_gil(seen.gil, traced)

    def _listings(self, traced: _Traced, totals: ProcessTotals) -> Mapping[tuple[str, int], str]:
        heats = hottest(totals.edges, self._application)
        return traced.sources.listings({heat.frame: heat.shown_lines for heat in heats})

    def _of_gil(self, seen: GilObservation, traced: _Traced) -> Recording:
        at_ns = seen.totals.at_ns
        return Recording(
            seen,
            self._arguments.mode,
            # Held time is a part of this, waits are not older: all of it is seen from there on.
            at_ns - seen.since_ns,
            self._application,
            sources=_sources(traced, seen.totals),
            listings=self._listings(traced, seen.totals),
            timeline=self._tracer.gils.timeline(seen.process.pid),
            worst=self._tracer.gils.moment(seen.process.pid),
            brief_releases=self._brief_releases(seen),
            ended_ns=_unix_ns(at_ns),
            host=platform.node(),
            snapshots=() if traced.snapshots is None else traced.snapshots.kept,
        )

    def _of_locks(self, seen: LockObservation, traced: _Traced) -> LockRecording:
        if seen.totals is None:
            return LockRecording(seen, 0, self._application)
        sources = traced.sources.read(seen.totals.frames())
        duration_ns = seen.totals.at_ns - seen.since_ns
        locks = self._tracer.locks
        timeline = None if locks is None else locks.timeline(seen.process.pid)
        worst = None if locks is None else locks.moment(seen.process.pid)
        return LockRecording(
            seen,
            duration_ns,
            self._application,
            sources,
            timeline,
            ended_ns=_unix_ns(seen.totals.at_ns),
            worst=worst,
        )

    def _brief_releases(self, seen: GilObservation) -> tuple[BriefRelease, ...] | None:
        # The release before a wait is seen where all of them are.
        if self._arguments.mode != Mode.FULL.value:
            return None
        return self._tracer.gils.brief_releases(seen.process.pid)


def _unix_ns(at_ns: int) -> int:
    """Return when it was *at_ns* of CLOCK_MONOTONIC, since the epoch."""
    return time.time_ns() - (time.monotonic_ns() - at_ns)


def _of_transactions(seen: StmObservation, traced: _Traced) -> StmRecording:
    return StmRecording(seen, seen.totals.at_ns - traced.began_ns)


def _lost_ns(seen: GilObservation | StmObservation | LockObservation | None) -> int:
    if isinstance(seen, GilObservation):
        return seen.totals.wait_ns
    if isinstance(seen, LockObservation) and seen.totals is not None:
        return seen.totals.contended_ns
    return 0


def _sources(traced: _Traced, totals: ProcessTotals) -> Mapping[tuple[str, int], str]:
    return traced.sources.read(totals.frames())


def _what_is_traced(process: AnyProcess, beside: str) -> str:
    who = f"{printable(process.name)}, pid {process.pid}"
    if isinstance(process, StmProcess):
        return f"the transactions of {who} ({LIBRARY_WORDS[process.library]})"
    if isinstance(process, LockProcess):
        return f"the locks of {who} ({python_words(process.python, tells_gil=False)})"
    # What a free-threaded one does with its GIL is not known before it has been initialised.
    return f"the GIL of {who} ({python_words(process.python, tells_gil=False)}){beside}"
