"""Where a PyPy in memory keeps its threads, and what their structures look like.

All that differs from build to build the file tells itself, see `facts`. What is here is the same in
PyPy 7.3.3 to 8.0.1, read in rpython/translator/c/src/threadlocal.h and rvmprof/src.
"""

from typing import Final

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.runtimes.pypy.facts import Facts
from gilscope.values import dataclass

__all__ = [
    "DESCRIPTOR_TID",
    "STACK_OFFSETS",
    "STRING_CONTENT",
    "STRING_LENGTH",
    "THREAD_CONTEXT",
    "THREAD_IDENT",
    "THREAD_NEXT",
    "VIRTUAL_FORCED",
    "Place",
]

THREAD_NEXT: Final = 24
"""In a thread's structure: the next one of the list."""
THREAD_IDENT: Final = 0x38
"""Its pthread_self()."""
THREAD_CONTEXT: Final = 0x40
"""Its ExecutionContext."""
STACK_OFFSETS: Final = (0x48, 0x50)
"""Its stack of nodes; since PyPy 8 another list stands in the first of these places."""
DESCRIPTOR_TID: Final = X86_64.pthread.descriptor_tid
STRING_LENGTH, STRING_CONTENT = 16, 24
"""In an rpy_string."""
VIRTUAL_FORCED: Final = 16
"""In a JitVirtualRef: the frame that it stands for, 0 while that is in registers."""


@dataclass(frozen=True, slots=True)
class Place:
    """One build, as it is loaded in one process."""

    facts: Facts
    load_bias: int

    def address(self, name: str) -> int:
        """Return the run-time address of what the facts call *name*."""
        return self.load_bias + self.facts[name]

    @property
    def lock(self) -> int:
        """The address of the word that is the lock."""
        return self.address("lock")
