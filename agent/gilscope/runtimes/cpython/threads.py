"""Matches the threads that an interpreter knows with those that the kernel knows."""

from gilscope.process import procfs
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.runtime import PythonThread, Runtime, kernel_thread_id, read_threads

__all__ = ["ThreadFinder", "tids_by_own_id"]


class ThreadFinder:
    """The threads of one live process."""

    def __init__(self, pid: int, runtime: Runtime) -> None:
        self._pid = pid
        self._runtime = runtime

    def by_tid(self) -> dict[int, PythonThread]:
        """Return the Python threads by tid, as the agent sees tids; raises TornRead or OSError."""
        return dict(self.all_by_tid())

    def all_by_tid(self) -> list[tuple[int, PythonThread]]:
        """Return the same, but a thread that runs code of several interpreters for each of them."""
        own_ids = self.tids_by_own_id()
        found: list[tuple[int, PythonThread]] = []
        for thread in read_threads(self._runtime):
            own_id = kernel_thread_id(self._runtime, thread)
            if own_id is not None and own_id in own_ids:
                found.append((own_ids[own_id], thread))
        return found

    def tid_of(self, tstate: int) -> int | None:
        """Return the tid of the thread whose state is at *tstate*, None if it cannot be told."""
        try:
            threads = self.by_tid()
        except (TornRead, OSError):
            return None
        return next((tid for tid, thread in threads.items() if thread.tstate == tstate), None)

    def tids_by_own_id(self) -> dict[int, int]:
        """Return the threads by their numbers in their own pid namespace; raises OSError."""
        return tids_by_own_id(self._pid)


def tids_by_own_id(pid: int) -> dict[int, int]:
    """Return the threads of *pid* by their numbers in their own pid namespace; raises OSError."""
    # The interpreter knows its threads by the ids of its own pid namespace.
    tids = procfs.list_tids(pid)
    if len(procfs.read_status(pid).namespace_pids) == 1:
        return {tid: tid for tid in tids}
    own_ids = {}
    for tid in tids:
        try:
            own_ids[procfs.read_status(pid, tid).namespace_pids[-1]] = tid
        except (OSError, KeyError):
            continue  # the thread has just ended
    return own_ids
