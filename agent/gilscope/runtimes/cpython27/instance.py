"""CPython 2.7 in the memory of one process."""

from collections.abc import Mapping

from gilscope.model.gil import Gil
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead, read_int
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.unwind_info import frame_walk
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.runtimes.cpython.runtime import Runtime, read_threads
from gilscope.runtimes.cpython.thread_roles import RoleReader
from gilscope.runtimes.cpython.threads import ThreadFinder
from gilscope.runtimes.cpython27.detect import Interpreter27
from gilscope.runtimes.cpython27.layout import CHECK_INTERVAL_SIZE, LAYOUT
from gilscope.runtimes.cpython27.lock import (
    LOCK_WORD,
    HolderReader27,
    LockMemory27,
    StandingReader27,
    semaphore,
)
from gilscope.values import Record

__all__ = ["CPython27Instance"]


class CPython27Instance:
    """A `gilscope.runtimes.base.Instance`."""

    has_own_gils = False
    """All its interpreters share one lock."""
    lock_word = LOCK_WORD
    lock_parts: Record = dict.fromkeys(GLIBC_X86_64.parts(), 0)
    """It has none of them: it is a semaphore of the C library's."""

    def __init__(
        self,
        pid: int,
        interpreter: Interpreter27,
        load_bias: int,
        memory: ProcessMemory,
        reads: Reads,
    ) -> None:
        """Read *interpreter*, loaded *load_bias* above its addresses, in *memory*, by *reads*."""
        self._pid = pid
        self._memory = memory
        self._reads = reads
        self._lock_pointer = load_bias + interpreter.lock_pointer
        self._current = load_bias + interpreter.current
        self._check_interval = load_bias + interpreter.check_interval
        self._runtime = Runtime(
            memory,
            LAYOUT,
            load_bias + interpreter.interpreters_head,
            load_bias + interpreter.code_type,
        )
        threads = ThreadFinder(pid, self._runtime)
        words = (self._lock_pointer, self._current)
        self.locks = LockMemory27(memory, self._current, threads, reads)
        self.holders = HolderReader27(memory, self._runtime, self._current, threads, reads)
        self.threads = RoleReader(pid, self._runtime, threads)
        self.standing = StandingReader27(memory, self._runtime, words, threads, reads)

    def gils(self) -> list[Gil]:
        """Return the lock; there is none before the first thread is started."""
        address = semaphore(self._memory, self._lock_pointer)
        return [] if address is None else [Gil(address, 0)]

    def is_gil_off(self) -> bool:
        """Return False: it always has one."""
        return False

    def modules_that_need_gil(self) -> tuple[str, ...]:
        """Return none: it always has its GIL."""
        return ()

    def count_threads(self) -> int:
        """Return how many thread states there are."""
        return len(read_threads(self._runtime))

    def code(self) -> CodeReader:
        """Return what reads code objects."""
        return CodeReader(self._runtime)

    def frame_walk(self) -> Record:
        """Return where threads and their frames are; raises OSError if the process has gone."""
        return frame_walk(self._pid, self._runtime)

    def probe_records(self) -> Mapping[str, Record]:
        """Return where probes find the lock and its holder."""
        words = {"lock_pointer": self._lock_pointer, "holder_pointer": self._current}
        return {"semaphores": words}

    def check_interval(self) -> int | None:
        """Return after how many bytecodes a thread comes to its next tick; None: not readable."""
        try:
            return self._reads(
                lambda: read_int(self._memory, self._check_interval, CHECK_INTERVAL_SIZE)
            )
        except (OSError, TornRead):
            return None
