"""Finds out which thread of a live process has which role, while the thread is there."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Generic, Protocol, TypeVar

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.naming.roles import (
    FRAMES_FOR_ROLE,
    MAIN_THREAD,
    job_role,
    named_role,
    resting_role,
    serves_jobs,
    thread_role,
)
from gilscope.process import procfs
from gilscope.process.remote_read import LimitExceeded, TornRead
from gilscope.runtimes.cpython.code.frames import outermost_frames
from gilscope.runtimes.cpython.runtime import PythonThread, Runtime
from gilscope.runtimes.cpython.threads import ThreadFinder
from gilscope.values import dataclass

__all__ = ["UNKNOWN", "ListsThreads", "RoleReader", "Roles"]

_Thread = TypeVar("_Thread")
_Thread_co = TypeVar("_Thread_co", covariant=True)

UNKNOWN = "unknown"
"""The role of a thread that ended, or had no Python frames, before it could be asked."""

_PATIENCE_S = 2.0
"""A thread that has not come to its own code by then, or has none, is not asked again. One of a
pool has shown by then whether it has more than one job."""

_FRAMES_FOR_JOB = 64
"""A framework stands between the pool and the application."""

_TURN_S = 0.25
"""How long one process is read at a time; what is left of it comes at the next reading."""

_TOO_MANY_JOBS = 2
"""To name the thread by one of them."""

_MODULE = "<module>"


@dataclass(slots=True)
class _Service:
    """A thread that a library runs, for whatever jobs come."""

    role: str
    """By the library's own function."""
    jobs: set[str] = field(default_factory=set)
    """Those that it has been seen with, two at the most."""


class ListsThreads(Protocol[_Thread_co]):
    """Lists the threads of a process."""

    def by_tid(self) -> Mapping[int, _Thread_co]:
        """Return them by tid, as the agent sees tids; raises TornRead or OSError."""


class Roles(ABC, Generic[_Thread]):
    """The roles of one process' threads, of any runtime. A role, once known, never changes."""

    def __init__(self, pid: int, threads: ListsThreads[_Thread]) -> None:
        self._pid = pid
        self._threads = threads
        self._wanted_s: dict[int, float] = {}
        self._known: dict[int, str] = {}
        self._learned: dict[int, str] = {}
        self._services: dict[int, _Service] = {}
        self.over_limit = ""
        """What there was too much of to be read, in words."""

    @property
    def known(self) -> dict[int, str]:
        """Role by tid, as the agent sees tids."""
        return self._known

    def want(self, tid: int) -> None:
        """Ask for the role of *tid* at the next reading."""
        if tid == self._pid:
            self._known[tid] = MAIN_THREAD
        elif tid not in self._known:
            self._wanted_s.setdefault(tid, time.monotonic())

    @property
    def is_wanted(self) -> bool:
        """Whether `read_wanted` has anything to do."""
        return bool(self._wanted_s)

    def learn(self, tid: int, frames: Sequence[Frame]) -> None:
        """Take note of the outermost *frames* in which *tid* has waited, outermost first.

        They name a thread that cannot be asked: one that ends at once, and one that C code started,
        which has Python frames only now and then.
        """
        if tid in self._known or tid in self._learned or UNKNOWN_FRAME in frames:
            return
        # Code of another interpreter begins anew, in a module; the thread does not.
        if not frames or frames[0].function == _MODULE:
            return
        role = thread_role(frames, is_main_thread=tid == self._pid)
        if role is not None and serves_jobs(frames):
            self._note_job(tid, role, frames)
        elif role is not None:
            self._learned[tid] = role

    def final(self, tid: int) -> str:
        """Return the role of a thread that has ended."""
        known = self._known.get(tid) or self._learned.get(tid)
        return known or self._of_jobs(tid, are_all=True) or UNKNOWN

    def settle(self) -> None:
        """Decide on the roles of all threads by what is known of them: nothing more will be."""
        for tid in list(self._services):
            role = self._of_jobs(tid, are_all=True)
            if role is not None:
                self._decide(tid, role)

    def forget(self, tid: int) -> None:
        """Let *tid* be another thread from now on."""
        self._services.pop(tid, None)
        self._known.pop(tid, None)
        self._learned.pop(tid, None)
        self._wanted_s.pop(tid, None)

    def read_wanted(self) -> None:
        """Look for the roles that are wanted; those of threads that just start come later."""
        if not self._wanted_s:
            return
        until_s = time.monotonic() + _TURN_S
        threads: Mapping[int, _Thread]
        try:
            threads = self._threads.by_tid()
        except LimitExceeded as error:
            self.over_limit, threads = str(error), {}
        except (TornRead, OSError):
            threads = {}
        alive = self._alive()
        for tid, wanted_s in list(self._wanted_s.items()):
            if time.monotonic() > until_s:
                break
            is_over = time.monotonic() - wanted_s >= _PATIENCE_S
            if is_over and tid not in alive:
                # What it has waited in is read later, when its record is.
                del self._wanted_s[tid]
                continue
            role = self._role(tid, threads.get(tid), is_over=is_over)
            if role is not None:
                self._decide(tid, role)

    def _alive(self) -> frozenset[int]:
        """Return the threads that may have a role still; where none can be listed, all of them."""
        try:
            return frozenset(procfs.list_tids(self._pid))
        except OSError:
            return frozenset(self._wanted_s)

    def _role(self, tid: int, thread: _Thread | None, *, is_over: bool) -> str | None:
        frames = [] if thread is None else self._frames(thread, FRAMES_FOR_ROLE)
        role = thread_role(frames, is_main_thread=False)
        if thread is not None and role is not None and serves_jobs(frames):
            if len(frames) == FRAMES_FOR_ROLE:
                frames = self._frames(thread, _FRAMES_FOR_JOB) or frames
            self._note_job(tid, role, frames)
            role = None
        role = role or self._learned.get(tid) or self._of_jobs(tid, are_all=is_over)
        return role or ((resting_role(frames) or UNKNOWN) if is_over else None)

    def _note_job(self, tid: int, role: str, frames: Sequence[Frame]) -> None:
        jobs = self._services.setdefault(tid, _Service(role)).jobs
        job = job_role(frames)
        if job is not None and len(jobs) < _TOO_MANY_JOBS:
            jobs.add(job)

    def _of_jobs(self, tid: int, *, are_all: bool) -> str | None:
        """Return the role of a thread of a pool; None for another, and where jobs may yet come."""
        service = self._services.get(tid)
        if service is None or not (are_all or len(service.jobs) == _TOO_MANY_JOBS):
            return None
        if len(service.jobs) == 1:
            return next(iter(service.jobs))
        return self._given_name(tid) or service.role

    def _given_name(self, tid: int) -> str | None:
        """Return the role by the name that the kernel has for *tid*, which 3.14 and later set."""
        try:
            name = procfs.read_thread_name(self._pid, tid)
            # A new thread has that of the thread which made it.
            is_own = name != procfs.read_thread_name(self._pid, self._pid)
            return named_role(name) if is_own else None
        except OSError:
            return None

    def _decide(self, tid: int, role: str) -> None:
        self._known[tid] = role
        self._learned.pop(tid, None)
        self._services.pop(tid, None)
        self._wanted_s.pop(tid, None)

    @abstractmethod
    def _frames(self, thread: _Thread, count: int) -> list[Frame]:
        """Return the outermost *count* frames of *thread*, outermost first; none: not readable."""


class RoleReader(Roles[PythonThread]):
    """The roles of the threads of a CPython."""

    def __init__(self, pid: int, runtime: Runtime, threads: ThreadFinder) -> None:
        super().__init__(pid, threads)
        self._runtime = runtime

    def _frames(self, thread: PythonThread, count: int) -> list[Frame]:
        try:
            return outermost_frames(self._runtime, thread.tstate, count)
        except (TornRead, OSError):
            return []
