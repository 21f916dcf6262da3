"""Keeps the traced processes those that the user chose: also the ones that come later."""

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from gilscope.discovery.fork_counter import Births
from gilscope.discovery.programs import PYTHON_NAMES, Programs
from gilscope.discovery.selection import Choice, Kinship
from gilscope.discovery.traced_log import TracedLog
from gilscope.doctor.explain import explained_denial
from gilscope.errors import GilscopeError, NoGil, NothingMapped, NotPermitted, NotPython
from gilscope.model.gil import Refusal
from gilscope.model.observation import AnyProcess
from gilscope.model.transactions import Library
from gilscope.process import procfs
from gilscope.process.view import name_of
from gilscope.text.printable import printable
from gilscope.tracing.tracer import Tracer
from gilscope.values import dataclass

__all__ = ["Following", "Scanner"]

_log = logging.getLogger(__name__)

_RETRIES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""A program that has just started maps its interpreter within this time, a few loads later."""
_UNWANTED_RETRIES_S = (0.5, 3.0)
"""One that is not wanted may still give itself another title; that of another program comes with a
notice."""

_SCAN_S = 0.4
"""How often, at most, all processes are checked because something has started: what forks, and
executes nothing, gives no notice."""
_FORKED_S = 0.02
"""After a fork of what is traced they are listed at once, and who is new among them is judged so
much later: by then a child that is to execute something has done so. The others have their parent's
place in a service, and wait as it does."""
_FORKED_REST = 30
"""For so many times what listing them took there is no such one: where processes are forked all
the time, or by the thousand."""
_SWEEP_S = 2.0
"""How often they are checked in any case, for what has ended."""

_RESCAN_S = 60.0
"""How often old processes are checked again: a program may embed Python late in its life."""

_SWITCHED_S = 5.0
"""How often a free-threaded Python is asked again whether it has switched its GIL on since."""

_UNASKED = frozenset({Library.RPYTHON})
"""Whose transactions are traced wherever they are found. Any program may use libitm: those are none
of gilscope's business unless somebody says so."""

_ENDED_KEPT_S = 30.0
"""The last figures of a process that ended stay for at least one more scrape."""


@dataclass(slots=True)
class _Attempt:
    """A process that is not traced, and when to look at it again."""

    tries: int = 0
    due_s: float = 0.0
    final: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """Who is told of the processes that are found, and what becomes of their figures."""

    attached: Callable[[AnyProcess], None]
    """Called with each process that is traced from then on."""
    replaced: Callable[[int], None] = lambda _: None
    """Called before the figures of a program are dropped that its process has replaced."""
    ended_kept_s: float = _ENDED_KEPT_S
    """How long the figures of a process stay that has ended."""


class Scanner:
    """Finds what is to be traced. `scan` is called by one thread, the rest by any."""

    def __init__(
        self,
        tracer: Tracer,
        is_wanted: Choice,
        pids: Iterable[int],
        *,
        has_all_transactions: bool = False,
        following: Following | None = None,
    ) -> None:
        """Trace with *tracer* the processes for which *is_wanted* holds, and *pids* in any case.

        *pids* were named by the user, one by one. Without *has_all_transactions* those alone are
        traced of programs that are neither a Python nor RPython. Without *following*, what is
        traced is logged.
        """
        self._following = following or Following(TracedLog().add)
        self._tracer = tracer
        self._libraries = frozenset(Library) if has_all_transactions else _UNASKED
        self._named = frozenset(pids)
        """To name a process is to ask for its transactions, whoever's they are."""
        self._is_wanted = is_wanted
        self._kinship = Kinship(self._named)
        self._programs = {
            libraries: Programs(libraries) for libraries in (_UNASKED, frozenset(Library))
        }
        self._lock = threading.Lock()
        self._seen: dict[int, _Attempt] = {}
        self._executed: set[int] = set()
        self._retried: set[int] = set()
        """The processes of `_seen` that are not to wait for a scan."""
        self._births = Births()
        self._are_births_seen = False
        self._forks = 0
        """Of those that are traced, as far as they have been told."""
        self._forked_s = math.inf
        """When a check is due because of one."""
        self._rested_s = 0.0
        """Not before this."""
        self._scan_s = 0.0
        self._sweep_s = 0.0
        self._called = threading.Event()
        """Set when `scan` has something to do."""
        self._refusals: dict[int, Refusal] = {}
        self._rescan_s = time.monotonic() + _RESCAN_S

    def refusals(self) -> list[Refusal]:
        """Return the Pythons that are wanted and cannot be traced."""
        with self._lock:
            return sorted(self._refusals.values(), key=lambda refusal: refusal.pid)

    def tick(self) -> None:
        """Look after the traced processes, and for new ones. To be called a few times a second."""
        self.note_executed(self._tracer.tick())
        self.scan()

    def note_executed(self, executed: Iterable[int]) -> None:
        """Have `scan` judge the processes *executed*, which run a new program.

        To be called a few times a second, by the thread that looks after the traced processes: it
        wakes the one that waits in `wait` when anything has started.
        """
        with self._lock:
            self._executed.update(executed)
            self._are_births_seen |= self._births.are_new()
            forks, self._forks = self._forks, self._tracer.forks
            if forks != self._forks:
                self._forked_s = min(self._forked_s, time.monotonic())
            if self._executed or self._are_births_seen or self._forked_s < math.inf:
                self._called.set()

    def wait(self) -> None:
        """Wait until `scan` has something to do, or `wake` is called."""
        due_s = min([self._seen[pid].due_s for pid in self._retried] + [self._sweep_s])
        if self._are_births_seen:
            due_s = min(due_s, self._scan_s)
        due_s = min(due_s, max(self._forked_s, self._rested_s))
        self._called.wait(max(0.0, due_s - time.monotonic()))

    def wake(self) -> None:
        """End `wait`."""
        self._called.set()

    def scan(self) -> None:
        """Notice what has started, replaced itself or ended. One thread alone may call it."""
        now_s = time.monotonic()
        with self._lock:
            self._called.clear()
            executed, self._executed = self._executed, set()
            is_scan_due = now_s >= self._sweep_s
            if now_s >= self._scan_s and (self._births.are_new() or self._are_births_seen):
                is_scan_due = True
            is_scan_due |= now_s >= max(self._forked_s, self._rested_s)
            has_forked = self._forked_s <= now_s
            if is_scan_due:
                self._are_births_seen = False
                self._forked_s = math.inf
                self._scan_s, self._sweep_s = now_s + _SCAN_S, now_s + _SWEEP_S
        # One that was found while this was being told has nothing older to be dropped.
        executed = {pid for pid in executed if not self._tracer.runs_the_same(pid)}
        for pid in executed:
            self._following.replaced(pid)
            self._tracer.drop(pid)
            self._forget(pid)
        candidates = executed | self._due(now_s)
        if is_scan_due:
            candidates |= self._unjudged(now_s)
            listed_s = time.monotonic()
            self._rested_s = listed_s + _FORKED_REST * (listed_s - now_s)
        # An agent that inspected itself would never come to rest.
        traced = {*self._tracer.pids, *self._tracer.gils.untrusted_pids, os.getpid()}
        for pid in sorted(candidates - traced):
            attempt = self._seen.get(pid)
            if attempt is None:
                is_young = has_forked and pid not in executed
                attempt = self._seen[pid] = _Attempt(due_s=now_s + _FORKED_S * is_young)
                if is_young:
                    self._retried.add(pid)
            if not attempt.final and now_s >= attempt.due_s:
                self._try(pid, attempt, now_s)

    def _due(self, now_s: float) -> set[int]:
        """Return the processes that are to be looked at again now."""
        due = {pid for pid in self._retried if now_s >= self._seen[pid].due_s}
        self._retried -= due
        return due

    def _unjudged(self, now_s: float) -> set[int]:
        """Return all processes that have not been judged yet, and forget those that have gone."""
        alive = set(procfs.list_pids())
        self._kinship.forget_dead(alive)
        self._named &= alive
        self._tracer.drop_ended(self._following.ended_kept_s, alive)
        for pid in self._seen.keys() - alive:
            self._forget(pid)
        if now_s >= self._rescan_s:
            self._rescan_s = now_s + _RESCAN_S
            for pid, attempt in self._seen.items():
                attempt.final = attempt.final and pid in self._refusals
        return {pid for pid in alive if pid not in self._seen or not self._seen[pid].final}

    def _try(self, pid: int, attempt: _Attempt, now_s: float) -> None:
        if not self._is_wanted(pid, self._kinship):
            self._later(pid, attempt, now_s, _UNWANTED_RETRIES_S)
            return
        programs = self._programs[self._libraries_of(pid)]
        program = programs.identity(pid)
        if programs.is_foreign(program, pid):
            self._later(pid, attempt, now_s, _RETRIES_S)
            return
        if self._tracer.traces(pid):
            # Whoever held it has had it traced since the scan began; attaching anew would lose
            # what was counted.
            self._forget(pid)
            return
        try:
            process = self._tracer.attach(pid, self._libraries_of(pid))
        except NotPython as error:
            # Unless it has ended or become another program meanwhile, or is only about to map
            # what it runs, which proves nothing.
            if not isinstance(error, NothingMapped) and programs.identity(pid) == program:
                programs.remember_foreign(program)
            self._later(pid, attempt, now_s, _RETRIES_S)
        except GilscopeError as error:
            self._give_up(pid, attempt, error, now_s)
        except Exception as error:  # noqa: BLE001 - see below
            # One process must not hide the others.
            _log.exception("could not trace process %d", pid)
            attempt.final = True
            self._refuse(pid, error)
        else:
            self._following.attached(process)
            self._forget(pid)

    def _give_up(self, pid: int, attempt: _Attempt, error: GilscopeError, now_s: float) -> None:
        if isinstance(error, NoGil):
            attempt.due_s = now_s + _SWITCHED_S
            self._retried.add(pid)
            if pid in self._refusals:
                return
        else:
            attempt.final = True
        # What may not be looked at and does not look like a Python is nobody's loss.
        if not isinstance(error, NotPermitted) or procfs.maps_mention(pid, PYTHON_NAMES):
            self._refuse(pid, error)

    def _libraries_of(self, pid: int) -> frozenset[Library]:
        """Return whose transactions are traced in *pid*."""
        return frozenset(Library) if pid in self._named else self._libraries

    def _later(self, pid: int, attempt: _Attempt, now_s: float, retries_s: Sequence[float]) -> None:
        if attempt.tries >= len(retries_s):
            attempt.final = True
            return
        attempt.due_s = now_s + retries_s[attempt.tries]
        attempt.tries += 1
        self._retried.add(pid)

    def _refuse(self, pid: int, error: Exception) -> None:
        name = "unknown"
        with contextlib.suppress(OSError):
            name = name_of(pid, procfs.read_command_line(pid))
        if isinstance(error, NotPermitted):
            error = explained_denial(error, pid)
        remedy = error.remedy if isinstance(error, GilscopeError) else ""
        # Whoever reads only the log of a container finds nothing traced otherwise, and no reason.
        _log.info("not traced: %s: %s", printable(name), printable(f"{error}; {remedy}"))
        with self._lock:
            self._refusals[pid] = Refusal(pid, name, str(error), remedy)

    def _forget(self, pid: int) -> None:
        self._retried.discard(pid)
        with self._lock:
            self._seen.pop(pid, None)
            self._refusals.pop(pid, None)
