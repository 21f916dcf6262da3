"""Reads the threads of a PyPy, from outside."""

from gilscope.process.remote_read import (
    LimitExceeded,
    Memory,
    TornRead,
    read_bytes,
    read_int,
    read_pointer,
)
from gilscope.runtimes.cpython.threads import tids_by_own_id
from gilscope.runtimes.pypy.layout import DESCRIPTOR_TID, THREAD_IDENT, THREAD_NEXT, Place
from gilscope.values import dataclass

__all__ = ["PyPyThread", "PyPyThreads", "is_still", "read_threads"]

_MOST_THREADS = 100_000


@dataclass(frozen=True, slots=True)
class PyPyThread:
    """One thread that has run Python code."""

    address: int
    """Of its structure."""
    ident: int
    """What PyPy itself calls it: its pthread_self()."""
    own_id: int
    """The kernel's number of it, in its own pid namespace."""


def read_threads(memory: Memory, head: int) -> list[PyPyThread]:
    """Return the threads in the list at *head*, none while PyPy starts; raises as `read_bytes`."""
    found: list[PyPyThread] = []
    seen = {head}
    address = read_pointer(memory, head + THREAD_NEXT)
    while address and address not in seen:
        if len(found) == _MOST_THREADS:
            raise LimitExceeded(f"its memory tells of more than {_MOST_THREADS} threads")
        seen.add(address)
        ident = int.from_bytes(read_bytes(memory, address + THREAD_IDENT, 8), "little")
        if ident:
            own_id = read_int(memory, ident + DESCRIPTOR_TID, 4)
            found.append(PyPyThread(address, ident, own_id))
        address = read_pointer(memory, address + THREAD_NEXT)
    if address and address != head:
        raise TornRead(f"a list of {len(found)} threads does not end at {address:#x}")
    return found


def is_still(memory: Memory, thread: PyPyThread) -> bool:
    """Return whether *thread* is where it was; raises as `read_bytes`."""
    ident = int.from_bytes(read_bytes(memory, thread.address + THREAD_IDENT, 8), "little")
    return ident == thread.ident and read_int(memory, ident + DESCRIPTOR_TID, 4) == thread.own_id


class PyPyThreads:
    """The threads of one live process."""

    def __init__(self, pid: int, memory: Memory, place: Place) -> None:
        self._pid = pid
        self._memory = memory
        self._place = place

    def all(self) -> list[PyPyThread]:
        """Return those that have run Python code; none where the file does not tell of them.

        Raises TornRead or OSError.
        """
        if not self._place.facts.knows_frames:
            return []
        return read_threads(self._memory, self._place.address("threads"))

    def by_tid(self) -> dict[int, PyPyThread]:
        """Return them by tid, as the agent sees tids; raises TornRead or OSError."""
        own_ids = self.tids_by_own_id()
        return {own_ids[each.own_id]: each for each in self.all() if each.own_id in own_ids}

    def tid_of(self, ident: int) -> int | None:
        """Return the tid of the thread that PyPy calls *ident*, None if it cannot be told."""
        try:
            threads = self.by_tid()
        except (TornRead, OSError):
            return None
        return next((tid for tid, each in threads.items() if each.ident == ident), None)

    def tids_by_own_id(self) -> dict[int, int]:
        """Return all threads by their numbers in their own pid namespace; raises OSError."""
        return tids_by_own_id(self._pid)
