"""Finds out which thread of a live process has which role, while the thread is there."""

import time
from collections.abc import Sequence

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.naming.roles import FRAMES_FOR_ROLE, MAIN_THREAD, resting_role, thread_role
from gilscope.process.remote_read import LimitExceeded, TornRead
from gilscope.runtimes.cpython.code.frames import outermost_frames
from gilscope.runtimes.cpython.runtime import PythonThread, Runtime
from gilscope.runtimes.cpython.threads import ThreadFinder

__all__ = ["UNKNOWN", "RoleReader"]

UNKNOWN = "unknown"
"""The role of a thread that ended, or had no Python frames, before it could be asked."""

_PATIENCE_S = 2.0
"""A thread that has not come to its own code by then, or has none, is not asked again."""

_TURN_S = 0.25
"""How long one process is read at a time; what is left of it comes at the next reading."""

_MODULE = "<module>"


class RoleReader:
    """The roles of one process' threads. A role, once known, never changes."""

    def __init__(self, pid: int, runtime: Runtime, threads: ThreadFinder) -> None:
        self._pid = pid
        self._runtime = runtime
        self._threads = threads
        self._wanted_s: dict[int, float] = {}
        self._known: dict[int, str] = {}
        self._learned: dict[int, str] = {}
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
        if role is not None:
            self._learned[tid] = role

    def final(self, tid: int) -> str:
        """Return the role of a thread that has ended."""
        return self._known.get(tid) or self._learned.get(tid) or UNKNOWN

    def forget(self, tid: int) -> None:
        """Let *tid* be another thread from now on."""
        self._known.pop(tid, None)
        self._learned.pop(tid, None)
        self._wanted_s.pop(tid, None)

    def read_wanted(self) -> None:
        """Look for the roles that are wanted; those of threads that just start come later."""
        if not self._wanted_s:
            return
        until_s = time.monotonic() + _TURN_S
        try:
            threads = self._threads.by_tid()
        except LimitExceeded as error:
            self.over_limit, threads = str(error), {}
        except (TornRead, OSError):
            threads = {}
        for tid, wanted_s in list(self._wanted_s.items()):
            if time.monotonic() > until_s:
                break
            frames = self._frames(threads[tid]) if tid in threads else []
            role = thread_role(frames, is_main_thread=False) or self._learned.get(tid)
            if role is None:
                if time.monotonic() - wanted_s < _PATIENCE_S:
                    continue
                role = resting_role(frames) or UNKNOWN
            self._known[tid] = role
            self._learned.pop(tid, None)
            del self._wanted_s[tid]

    def _frames(self, thread: PythonThread) -> list[Frame]:
        try:
            return outermost_frames(self._runtime, thread.tstate, FRAMES_FOR_ROLE)
        except (TornRead, OSError):
            return []
