"""PyPy in the memory of one process."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from gilscope.model.gil import Gil
from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.code.unwind_info import namespace
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.layout import (
    DESCRIPTOR_TID,
    STACK_OFFSETS,
    THREAD_CONTEXT,
    THREAD_IDENT,
    THREAD_NEXT,
    VIRTUAL_FORCED,
    Place,
)
from gilscope.runtimes.pypy.lock import LOCK_WORD, HolderReader, LockMemory, StandingReader
from gilscope.runtimes.pypy.nodes import place_of
from gilscope.runtimes.pypy.roles import PyPyRoles
from gilscope.runtimes.pypy.stacks import StackNames, StackReader, find_stack_offset
from gilscope.runtimes.pypy.threads import PyPyThreads
from gilscope.values import Record

__all__ = ["NotedCode", "PyPyInstance"]

_DEEPEST_HELD: Final = 128
_DEEPEST_STANDING: Final = 1000


class PyPyInstance:
    """A `gilscope.runtimes.base.Instance`."""

    has_own_gils = False
    """There are no subinterpreters."""
    lock_word = LOCK_WORD
    lock_parts: Record = dict.fromkeys(GLIBC_X86_64.parts(), 0)
    """It has none of them: it is one word."""

    def __init__(
        self, pid: int, facts: Facts, load_bias: int, memory: ProcessMemory, reads: Reads
    ) -> None:
        """Read what *facts* tell of, loaded *load_bias* above its addresses, by *reads*."""
        self._pid = pid
        self._memory = memory
        self._reads = reads
        self._place = Place(facts, load_bias)
        self._threads = PyPyThreads(pid, memory, self._place)
        stacks = partial(StackReader, memory, self._place, self._threads)
        self.locks = LockMemory(memory, self._threads, reads)
        self.holders = HolderReader(
            memory, self._place, self._threads, stacks(_DEEPEST_HELD), reads
        )
        self.threads = PyPyRoles(pid, self._threads, stacks(_DEEPEST_STANDING))
        self.standing = StandingReader(
            memory, self._place.lock, self._threads, stacks(_DEEPEST_STANDING), reads
        )

    def gils(self) -> list[Gil]:
        """Return the lock, which is there from the beginning."""
        return [Gil(self._place.lock, 0)]

    def is_gil_off(self) -> bool:
        """Return False: it always has one."""
        return False

    def modules_that_need_gil(self) -> tuple[str, ...]:
        """Return none: it always has its GIL."""
        return ()

    def count_threads(self) -> int:
        """Return how many threads have run Python code."""
        return len(self._threads.all())

    def code(self) -> "NotedCode":
        """Return what names the stacks that probes have noted."""
        return NotedCode(StackNames(self._memory, self._place))

    def frame_walk(self) -> Record:
        """Return in which namespace threads are numbered; raises OSError if it has gone."""
        device, inode = namespace(self._pid)
        return {"namespace_device": device, "namespace_inode": inode}

    def check_interval(self) -> None:
        """Return None: how often a thread gives the lock away is not read."""

    def probe_records(self) -> Mapping[str, Record]:
        """Return where probes find the lock, threads and frames."""
        return {"pypys": {"lock": self._place.lock, **self._frame_record()}}

    def _frame_record(self) -> Record:
        facts = self._place.facts
        if not facts.knows_frames:
            return {}
        try:
            threads = self._reads(self._threads.all)
            offset = self._reads(partial(find_stack_offset, self._memory, self._place, threads))
        except (OSError, TornRead):
            threads, offset = [], None
        distance = threads[0].address - threads[0].ident if threads else 0
        return {
            "threads": self._place.address("threads"),
            "thread_of_ident": distance,
            "thread_next": THREAD_NEXT,
            "thread_ident": THREAD_IDENT,
            "thread_stack": offset or STACK_OFFSETS[0],
            "thread_context": THREAD_CONTEXT,
            "descriptor_tid": DESCRIPTOR_TID,
            "context_frame": facts["context.frame"],
            "frame_caller": facts["frame.caller"],
            "frame_code": facts["frame.code"],
            "frame_instruction": facts["frame.instruction"],
            "code_number": facts["code.number"],
            "frame_type": facts["type.frame"],
            "other_frame_type": facts["type.other_frame"],
            "virtual_type": facts["type.virtual"],
            "virtual_forced": VIRTUAL_FORCED,
        }


class NotedCode:
    """Names of what the probes have noted: a `gilscope.runtimes.base.Code`."""

    def __init__(self, names: StackNames) -> None:
        self._names = names

    def frames(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...]:
        """Return nothing but unknown frames: a place is one of a stack, see `whole_stack`."""
        return tuple(UNKNOWN_FRAME for _ in places)

    def whole_stack(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...]:
        """Return the frames of a stack, of which one place may stand for several."""
        noted = ((place_of(number), instruction) for number, instruction in places)
        return self._names.frames((node, at) for node, at in noted if node is not None)

    def is_same(self, code: int, identity: int) -> bool:  # noqa: ARG002 - never used again
        """Return True: a number of code is never used again."""
        return True

    def forget(self, code: int) -> None:
        """Have nothing to read again."""
