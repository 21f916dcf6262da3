"""What the probes on locks and user space agree on: numbers, records, reasons for losses.

`make abi` renders it as ``probes/locks/abi.bpf.h``.
"""

from typing import Final

from gilscope.bpf.c_header import CEnum, CStruct, Member, Row, SharedEnum, constants, header
from gilscope.model.kinds import Numbered
from gilscope.runtimes.cpython.code.frame_marks import FIRST_OWNER_WITHOUT_CODE, REFERENCE_FLAGS
from gilscope.series.moments.seconds import SECOND_SHIFT
from gilscope.windows.notices import NOTICE

__all__ = ["LONGEST_TYPE", "SPAN", "LockLoss", "Program", "SleepKind", "SpanKind", "c_header"]

LONGEST_TYPE: Final = 64
"""Of a type's name, with the zero at its end; of a longer one the rest is left out."""
_STACK_DEPTH: Final = 8
"""A power of two: frames of a waiting thread that are read."""
_MOST_HOLDERS: Final = 256
"""Of one process. They run on, and may stand at any instruction: what has no room counts without
one."""
_MOST_HELD_WAITS: Final = 64
"""Of one thread."""


class LockLoss(Numbered):
    """A reason why a wait for a lock was not counted, or not in full.

    The names are some of `gilscope.gil.abi`: both are values of the same label.
    """

    READ_FAULT = "read_fault", 0
    """A page of the target's memory was not readable at that instant."""
    TABLE_FULL = "table_full", 1
    """A BPF map had no room for another thread, place or stack."""
    BEGAN_UNSEEN = "began_unseen", 2
    """A sleep had begun before the probes were there."""
    THREAD_REUSED = "thread_reused", 3
    """A dead thread's number went to another process before it was listed."""
    STACK_UNKNOWN = "stack_unknown", 4
    """The thread's own state was not found: its waits count without a place."""
    SPAN = "span", 5
    """The ring of the timeline was full; a wait is counted and not drawn."""


class Program(SharedEnum):
    """The programs that sit in traced processes: bits of `stepped_programs`."""

    ON_PARK = 0
    ON_SEMAPHORE = 1
    ON_TAKE = 2
    ON_WAKE = 3
    ON_WANT = 4
    ON_WOKEN = 5
    ON_STOP = 6
    ON_START = 7


class SleepKind(SharedEnum):
    """What a thread waits for, as far as the probes tell it."""

    OBJECT = 0, "the lock of an object"
    LOCK_OBJECT = 1, "an object that is a lock"
    INTERPRETER = 2, "a mutex of the interpreter"
    OTHER = 3, "another mutex"
    SEMAPHORE = 4, "a lock of the older kind"
    STOPPED = 5, "the end of a stop of the world"
    STOPPING = 6, "a stop that it has asked for: until the other threads have stopped"
    EVENT = 7, "an event, the end of a thread or an item of a queue"


class SpanKind(SharedEnum):
    """What a span is a part of."""

    WAIT = 0
    STOPPING = 1, "a stop of the world, until all threads have stopped"
    STANDING = 2, "a stop of the world, from then on"


SPAN: Final = CStruct(
    "span",
    "A part of a wait, or of a stop of the world, as it has counted.",
    (
        Member("u64", "began_ns"),
        Member("u64", "ended_ns"),
        Member("u64", "stack", comment="of the waiting thread; 0: not known"),
        Member("u64", "released", comment="likewise, of who has ended the wait"),
        Member("u64", "held", comment="likewise, of who had the mutex when it began"),
        Member("u32", "tgid"),
        Member("u32", "tid"),
        Member("u32", "kind", comment="enum span_kind"),
        Member("u32", "reason", comment="enum sleep_kind; of a stop, whether it is a collection"),
        Member("u8", "type", LONGEST_TYPE, "of the object, or empty"),
    ),
)


def c_header() -> str:
    """Return ``probes/locks/abi.bpf.h``."""
    losses = (Row(f"LOST_{loss.name}", loss.number) for loss in LockLoss)
    return header(
        "locks/abi.py",
        constants(
            {
                "LONGEST_TYPE": (LONGEST_TYPE, "with the zero at its end"),
                "STACK_DEPTH": (_STACK_DEPTH, "a power of two"),
                "MOST_HOLDERS": (_MOST_HOLDERS, "stacks of a process that only they had"),
                "MOST_HELD_WAITS": (_MOST_HELD_WAITS, "entries of a thread in `waits` by them"),
                "SPAN_SECOND_SHIFT": (SECOND_SHIFT, "2^30 ns are what spans call a second"),
                "OWNER_WITHOUT_CODE": (FIRST_OWNER_WITHOUT_CODE, "from here on, of a frame"),
                "REFERENCE_FLAGS": (REFERENCE_FLAGS, "of a reference to code, no part of it"),
            }
        ),
        CEnum("loss", "Why a wait was not counted.", tuple(losses)).declaration(),
        CEnum.of(Program, "program", "PROGRAM_").declaration(),
        CEnum.of(SleepKind, "sleep_kind", "SLEEP_").declaration(),
        CEnum.of(SpanKind, "span_kind", "SPAN_").declaration(),
        SPAN.declaration(),
        NOTICE.declaration(),
    )
