"""Finds out which thread of a live process has which role, while the thread is there."""

import time

from gilscope import procfs
from gilscope.gil.frames import outermost_frames
from gilscope.gil.memory import TornRead
from gilscope.gil.roles import FRAMES_FOR_ROLE, MAIN_THREAD, thread_role
from gilscope.gil.runtime import Runtime
from gilscope.gil.thread_finder import ThreadFinder
from gilscope.model import PythonThread

__all__ = ["UNKNOWN", "RoleReader"]

UNKNOWN = "unknown"
"""The role of a thread that ended, or had no Python frames, before it could be asked."""

_PATIENCE_S = 2.0
"""A thread that has not come to its own code by then, or has none, is not asked again."""


class RoleReader:
    """The roles of one process' threads. A role, once known, never changes."""

    def __init__(self, pid: int, runtime: Runtime, threads: ThreadFinder) -> None:
        self._pid = pid
        self._runtime = runtime
        self._threads = threads
        self._cwd = procfs.read_cwd(pid)
        self._wanted_s: dict[int, float] = {}
        self._known: dict[int, str] = {}

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

    def final(self, tid: int) -> str:
        """Return the role of a thread that has ended."""
        return self._known.get(tid, UNKNOWN)

    def forget(self, tid: int) -> None:
        """Let *tid* be another thread from now on."""
        self._known.pop(tid, None)
        self._wanted_s.pop(tid, None)

    def read_wanted(self) -> None:
        """Look for the roles that are wanted; those of threads that just start come later."""
        if not self._wanted_s:
            return
        try:
            threads = self._threads.by_tid()
        except (TornRead, OSError):
            threads = {}
        for tid, wanted_s in list(self._wanted_s.items()):
            role = self._role(threads[tid]) if tid in threads else None
            if role is None and time.monotonic() - wanted_s < _PATIENCE_S:
                continue
            self._known[tid] = role or UNKNOWN
            del self._wanted_s[tid]

    def _role(self, thread: PythonThread) -> str | None:
        try:
            frames = outermost_frames(self._runtime, thread.tstate, FRAMES_FOR_ROLE)
        except (TornRead, OSError):
            return None
        return thread_role(frames, is_main_thread=False, cwd=self._cwd)
