"""What the probes of transactions and user space agree on: numbers, records, reasons for losses.

`make abi` renders it as ``probes/transactions/abi.bpf.h``.
"""

from typing import Final

from gilscope.bpf.c_header import (
    CEnum,
    Row,
    SharedEnum,
    constants,
    header,
    histogram_constants,
)
from gilscope.model.kinds import Numbered
from gilscope.windows.notices import NOTICE

__all__ = [
    "EVENT_NUMBERS",
    "Collection",
    "Event",
    "Program",
    "RestartReason",
    "StmLoss",
    "Wait",
    "c_header",
]

EVENT_NUMBERS: Final = 32
"""Room for the numbers that a program gives its events; a power of two."""

_WAITS: Final = 8
"""Room for the kinds of them; a power of two."""
_RESTART_REASONS: Final = 16
"""Room for them in the probes' records; a power of two."""


class StmLoss(Numbered):
    """A reason why an event of a transaction was lost.

    The names are some of `gilscope.gil.abi`: both are values of the same label.
    """

    READ_FAULT = "read_fault", 0
    """A page of the target's memory was not readable at that instant."""
    TABLE_FULL = "table_full", 1
    """A BPF map had no room for another thread, transaction or reason."""
    BEGAN_UNSEEN = "began_unseen", 2
    """A transaction had begun before the probes were there; its end is counted, its time is not."""
    ABANDONED = "abandoned", 3
    """A transaction of which no end was seen before its thread began another one, or ended."""
    THREAD_REUSED = "thread_reused", 4
    """A dead thread's number went to another process before it was listed."""


class Program(SharedEnum):
    """The programs that sit in traced processes: bits of `stepped_programs`."""

    ON_ABORT = 0
    ON_BECOME_INEVITABLE = 1
    ON_EVENT = 2
    ON_ITM_BEGIN = 3
    ON_ITM_CANCEL = 4
    ON_ITM_COMMIT = 5
    ON_ITM_MODE = 6
    ON_ITM_RESTART = 7
    ON_START = 8
    ON_LEAVE = 9
    ON_UNREGISTER = 10


class Event(SharedEnum):
    """What happens to a transaction of RPython, whatever number the program gives it."""

    OTHER = 0, "what is not followed"
    START = 1
    COMMIT = 2
    ABORT = 3
    DETACH = 4
    REATTACH = 5
    CONFLICT = 6
    WAIT_FREE_SEGMENT = 7, "the waits are in the order of enum wait"
    WAIT_SYNCING = 8
    WAIT_SYNC_PAUSE = 9
    WAIT_OTHER_INEVITABLE = 10
    WAIT_CONTENTION = 11
    WAIT_DONE = 12
    GC_MINOR_START = 13
    GC_MINOR_DONE = 14
    GC_MAJOR_START = 15
    GC_MAJOR_DONE = 16


class Wait(SharedEnum):
    """What a thread stands still for, in the order of the events."""

    FREE_SEGMENT = 0
    SYNCING = 1
    SYNC_PAUSE = 2
    OTHER_INEVITABLE = 3
    CONTENTION = 4


class Collection(SharedEnum):
    """Generations of RPython's collections of garbage."""

    MINOR = 0
    MAJOR = 1


class RestartReason(SharedEnum):
    """libitm's ``gtm_restart_reason``."""

    REALLOCATE = 0
    LOCKED_READ = 1
    LOCKED_WRITE = 2
    VALIDATE_READ = 3
    VALIDATE_WRITE = 4
    VALIDATE_COMMIT = 5
    SERIAL_IRR = 6
    NOT_READONLY = 7
    CLOSED_NESTING = 8
    INIT_METHOD_GROUP = 9
    UNINSTRUMENTED_CODE = 10


def c_header() -> str:
    """Return ``probes/transactions/abi.bpf.h``."""
    losses = (Row(f"LOST_{loss.name}", loss.number) for loss in StmLoss)
    return header(
        "transactions/abi.py",
        constants(
            {
                **histogram_constants(),
                "EVENT_NUMBERS": (EVENT_NUMBERS, "a power of two"),
                "WAITS": (_WAITS, f"a power of two; there are {len(Wait)} kinds"),
                "COLLECTIONS": (len(Collection), "generations of them"),
                "RESTART_REASONS": (
                    _RESTART_REASONS,
                    f"a power of two; libitm has {len(RestartReason)}",
                ),
            }
        ),
        CEnum("loss", "Why an event of a transaction was lost.", tuple(losses)).declaration(),
        CEnum.of(Program, "program", "PROGRAM_").declaration(),
        CEnum.of(Collection, "collection", "COLLECTION_").declaration(),
        CEnum.of(Event, "event", "EVENT_").declaration(),
        NOTICE.declaration(),
    )
