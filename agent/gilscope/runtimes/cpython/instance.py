"""CPython in the memory of one process."""

from collections.abc import Mapping

from gilscope.model.gil import Gil
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.base import HeldWord
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.modules import modules_that_need_gil
from gilscope.runtimes.cpython.code.unwind_info import frame_walk
from gilscope.runtimes.cpython.gil_state import LockMemory
from gilscope.runtimes.cpython.held_stack import HolderReader
from gilscope.runtimes.cpython.runtime import Runtime, is_gil_off, read_gils, read_threads
from gilscope.runtimes.cpython.standing import StandingReader
from gilscope.runtimes.cpython.thread_roles import RoleReader
from gilscope.runtimes.cpython.threads import ThreadFinder
from gilscope.values import Record

__all__ = ["CPythonInstance"]


class CPythonInstance:
    """A `gilscope.runtimes.base.Instance`."""

    def __init__(self, pid: int, runtime: Runtime, memory: ProcessMemory, reads: Reads) -> None:
        """Read *runtime* in *memory* of process *pid*, by *reads*."""
        self._pid = pid
        self._runtime = runtime
        threads = ThreadFinder(pid, runtime)
        self.lock_word = HeldWord(runtime.layout.gil_struct.locked, 4, 1, is_held_if_equal=True)
        self.locks = LockMemory(memory, runtime.layout.gil_struct, threads, reads)
        self.holders = HolderReader(memory, runtime, threads, reads)
        self.threads = RoleReader(pid, runtime, threads)
        self.standing = StandingReader(memory, runtime, threads, reads)

    @property
    def has_own_gils(self) -> bool:
        """Whether each interpreter may have a GIL of its own."""
        return self._runtime.layout.gil_in_runtime is None

    @property
    def lock_parts(self) -> Record:
        """Where the parts of a GIL are, from its `cond`: members of ``struct target``."""
        return self._runtime.layout.gil_struct.parts()

    def gils(self) -> list[Gil]:
        """Return every GIL once, under the lowest id of the interpreters that share it."""
        return read_gils(self._runtime)

    def is_gil_off(self) -> bool | None:
        """Return whether it is a free-threaded build whose GIL is off; None: not known yet."""
        return is_gil_off(self._runtime)

    def modules_that_need_gil(self) -> tuple[str, ...]:
        """Return the extension modules that have switched it on, in the order of their import."""
        return modules_that_need_gil(self._runtime)

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
        """Return nothing: sites and frames are all that probes have to know."""
        return {}

    def check_interval(self) -> None:
        """Return None: a thread gives the GIL away when it is asked to."""
