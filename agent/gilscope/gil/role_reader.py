"""Finds out which thread of a live process has which role, while the thread is there."""

import time

from gilscope import procfs
from gilscope.gil.frames import outermost_frames
from gilscope.gil.memory import TornRead
from gilscope.gil.roles import FRAMES_FOR_ROLE, MAIN_THREAD, thread_role
from gilscope.gil.runtime import Runtime, kernel_thread_id, read_threads
from gilscope.model import PythonThread

__all__ = ["UNKNOWN", "RoleReader"]

UNKNOWN = "unknown"
"""The role of a thread that ended, or had no Python frames, before it could be asked."""

_PATIENCE_S = 2.0
"""A thread that has not come to its own code by then, or has none, is not asked again."""


class RoleReader:
    """The roles of one process' threads. A role, once known, never changes."""

    def __init__(self, pid: int, runtime: Runtime) -> None:
        self._pid = pid
        self._runtime = runtime
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
            threads = self._threads_by_tid()
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

    def _threads_by_tid(self) -> dict[int, PythonThread]:
        own_ids = self._tids_by_own_id()
        found: dict[int, PythonThread] = {}
        for thread in read_threads(self._runtime):
            own_id = kernel_thread_id(self._runtime, thread)
            if own_id is not None and own_id in own_ids:
                found[own_ids[own_id]] = thread
        return found

    def _tids_by_own_id(self) -> dict[int, int]:
        # The interpreter knows its threads by the ids of its own pid namespace.
        tids = procfs.list_tids(self._pid)
        if len(procfs.read_status(self._pid).namespace_pids) == 1:
            return {tid: tid for tid in tids}
        own_ids = {}
        for tid in tids:
            try:
                own_ids[procfs.read_status(self._pid, tid).namespace_pids[-1]] = tid
            except (OSError, KeyError):
                continue  # the thread has just ended
        return own_ids
