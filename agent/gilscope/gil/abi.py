"""What the probes on the GIL and user space agree on: numbers, records and reasons for losses.

`make abi` renders it as ``probes/gil/abi.bpf.h``.
"""

from typing import Final

from gilscope.bpf.c_header import (
    CEnum,
    CStruct,
    Member,
    Row,
    SharedEnum,
    constants,
    header,
    histogram_constants,
)
from gilscope.model.kinds import Cause, Kind, Numbered
from gilscope.runtimes.cpython.code import frame_marks
from gilscope.series.moments.seconds import SECOND_SHIFT

__all__ = [
    "LONGEST_ROUTE",
    "NOTICE",
    "QUOTAS",
    "REGION_HEAD",
    "REGION_PLACE",
    "REGION_PLACES",
    "REGION_TRIES",
    "SPAN",
    "SPAN_IS_HOLD",
    "STACK",
    "STACK_DEPTH",
    "HeldTraceKind",
    "Loss",
    "NextProgram",
    "NoticeKind",
    "Quantity",
    "Quota",
    "RawStackState",
    "StackId",
    "TargetFlag",
    "c_header",
]

STACK_DEPTH: Final = 32
"""Frames of a stack that are noted; a power of two."""
LONGEST_ROUTE: Final = 64
"""Of a request, bytes, with the zero at its end; a power of two."""
QUOTAS: Final = 8
"""Room for them in the probes' records."""
REGION_PLACES: Final = 1024
"""What a process that reads its own waits has of them; the first is the head."""
REGION_TRIES: Final = 8
"""In how many places in a row a thread may be."""
SPAN_IS_HOLD: Final = len(Kind)
"""In place of a wait's kind."""


class Loss(Numbered):
    """A reason why an event was lost, or found invalid."""

    READ_FAULT = "read_fault", 0
    """A page of the target's memory was not readable at that instant."""
    TABLE_FULL = "table_full", 1
    """A BPF map had no room for another thread, lock or histogram."""
    BEGAN_UNSEEN = "began_unseen", 2
    """A wait had begun before the probes were there; what they saw of it is counted."""
    ABANDONED = "abandoned", 3
    """A thread ended while it waited; its wait is counted up to its end."""
    NOTICE = "notice", 4
    """The ring of notices was full; the agent looks for itself instead."""
    RETURN_UNKNOWN = "return_unknown", 5
    """Libc method: the place that a wait returns to was not probed yet."""
    LOCK_UNKNOWN = "lock_unknown", 6
    """Which lock a thread uses was not known yet: it was preempted, or acquired a new one."""
    THREAD_REUSED = "thread_reused", 7
    """A dead thread's number went to another process before its totals were read."""
    STACK_TORN = "stack_torn", 8
    """A thread's stack changed too much while it was read; that end of the wait is unknown."""
    STACK_UNKNOWN = "stack_unknown", 9
    """Whose stack it would have been could not be found out; that end of the wait is unknown."""
    STACK_UNSENT = "stack_unsent", 10
    """The ring of stacks was full; the stack is sent the next time that it is seen."""
    EDGE = "edge", 11
    """A BPF map had no room for another pair of stacks; who kept whom waiting is not noted."""
    SPAN = "span", 12
    """The ring of the timeline was full; a wait or a hold is counted and not drawn."""
    QUOTA = "quota", 13
    """The process had as many entries of a BPF map as one may have; others lose nothing by it."""
    INVALID_MUTEX = "invalid_mutex", 14
    """A wait whose mutex is not the lock's own: the probes are in the wrong place."""
    INVALID_LOCKED = "invalid_locked", 15
    """A wait for a lock that is not held: the probes are in the wrong place."""
    INVALID_INTERVAL = "invalid_interval", 16
    """A wait for a lock with an impossible switch interval: the probes are in the wrong place."""
    INVALID_HOLDER = "invalid_holder", 17
    """A lock taken while another thread held it, or released by one that did not hold it."""
    PROBES_GONE = "probes_gone", 18
    """The probes had gone from the code of the process; what they had counted was given up, and
    they were put in once more. It is the agent that notices."""
    TRACE = "trace", 19
    """A BPF map had no room for another trace; in which one the wait was is not noted."""
    UNFOLLOWED = "unfollowed", 20
    """A wait was in flight when one of its window had lasted for ten seconds, while others switched
    all the time: it counts up to there, and is attributed to nobody. It is the agent that notices.
    """
    WINDOW = "window", 21
    """A window of waits did not take place, because the agent could not run or put no probes in:
    what is estimated from the others is too low. It is the agent that notices."""

    @property
    def is_invalid(self) -> bool:
        """Whether it proves that the probes do not sit where they should."""
        return self.name.startswith("INVALID_")


class Quantity(SharedEnum):
    """What a histogram is of."""

    AFTER_BLOCKING_CALL = 0, "waits, by cause"
    AFTER_PREEMPTION = 1
    AFTER_UNKNOWN = 2
    DROP_LATENCY = 3


class NoticeKind(SharedEnum):
    """What the probes ask user space to check."""

    EXEC = 0, "a process has replaced its program"
    THREAD = 1, "a thread waits for the first time"
    RETURN = 2, "the libc method has met a new return site"
    LOCK = 3, "a lock is taken that user space has not given a slot"
    WINDOW = 4, "a window's traps are used up, or the hold that outlasted it has ended"
    SPANS = 5, "another quarter of the ring of spans has filled"
    FORK = 6, "a process has a child, with a copy of its memory"
    LONG_WAIT = 7, "a wait lasts as long as user space wants to know of"


class RawStackState(SharedEnum):
    """How much of a stack was seen."""

    WHOLE = 0
    CUT = 1, "deeper than STACK_DEPTH, or the caller of a generator is not known just now"
    TORN = 2, "its innermost frames changed while they were being read, and are left out"


class StackId(SharedEnum):
    """Ids of stacks; those that were read have the highest bit set."""

    NONE = 0, "not sampled yet"
    UNKNOWN = 1, "it could not be read, or nobody can tell whose it is"
    NO_PYTHON = 2, "the thread runs no Python code"
    UNSAMPLED = 3, "of a wait that was left out by random sampling"


class NextProgram(SharedEnum):
    """What the programs jump to, by its number in `next_program`."""

    WALK_STACK = 0
    USE_STACK = 1
    FIND_THREAD = 2
    END_WAIT = 3
    ON_WAIT = 4
    ON_YIELD = 5
    READ_STACK = 6
    WALK_TURN = 7
    WALK_TURN_HOLDER = 8
    SHARE_OUT = 9
    NOTE_HOLDERS_TRACE = 10


class HeldTraceKind(SharedEnum):
    """What a request has kept the lock by."""

    LONG_HOLD = 0, "that lasted as long as a slow drop, where all holds are seen"
    SLOW_DROP = 1


class Quota(SharedEnum):
    """What one process may have a bounded number of, so that there is room for all others."""

    THREADS = 0
    BLAMES = 1
    GILS = 2
    RETURN_SITES = 3
    EDGES = 4
    CULPRITS = 5
    STACKS = 6, "that are in the ring, not read yet"
    TRACES = 7


class TargetFlag(SharedEnum):
    """What is known of a process beyond the least, a bit each."""

    KNOWS_CALLERS = 1, "`callers` has rules for this file"
    READS_STACKS = 2, "`pythons` has an entry for this process"


NOTICE: Final = CStruct(
    "notice",
    "What the ring of notices has.",
    (Member("u32", "kind"), Member("u32", "tgid"), Member("u32", "tid"), Member("u32", "padding")),
)

STACK: Final = CStruct(
    "stack",
    "The frames of a thread that run Python code, innermost first.",
    (
        Member("u64", "id"),
        Member("u32", "tgid"),
        Member("u32", "depth"),
        Member("u32", "state"),
        Member("u32", "padding"),
        Member("u64", "codes", STACK_DEPTH),
        Member(
            "u32", "instructions", STACK_DEPTH, "from the code object, or as the frame states it"
        ),
        Member("u32", "identities", STACK_DEPTH, "of the code objects: see code_objects"),
    ),
)

SPAN: Final = CStruct(
    "span",
    "One wait or one hold.",
    (
        Member("u64", "cond"),
        Member("u64", "began_ns"),
        Member("u64", "ended_ns"),
        Member("u64", "waiter", comment="stacks; a hold has none"),
        Member("u64", "holder"),
        Member("u32", "tgid"),
        Member("u32", "tid"),
        Member("u32", "kind"),
        Member("u32", "away_ns", comment="from the release before a wait; 0: not known"),
    ),
)

REGION_HEAD: Final = CStruct(
    "region_head",
    "What comes first among the places of a process' threads.",
    (
        Member("u64", "namespace_device", comment="of the pid namespace that it knows them in;"),
        Member("u64", "namespace_inode", comment="0 and 0: the agent's own"),
        Member("u64", "unplaced", comment="waits and holds of threads without a place"),
        Member("u64", "held_since_ns", comment="when who holds the GIL has acquired it"),
        Member("u32", "holder", comment="as its process knows it; 0: nobody, or not known"),
        Member("u32", "tells_holds", comment="all of them are seen, by the clock that it has too"),
        Member("u64", "spare", 3),
    ),
)

REGION_PLACE: Final = CStruct(
    "region_place",
    "What a thread has waited and held, as its process reads it; the numbers tell a torn copy.",
    (
        Member("u64", "version_end"),
        Member("u32", "tid", comment="as its process knows it; 0: nobody's"),
        Member("u32", "owner", comment="the same as the agent knows it"),
        Member("u64", "wait_ns", comment="finished waits"),
        Member("u64", "waits"),
        Member("u64", "held_ns", comment="finished holds, where the head tells of them"),
        Member("u64", "version_begin"),
        Member("u64", "spare", 2),
    ),
)

_CAUSE_COMMENTS = {
    Cause.BLOCKING_CALL: "the thread came back from a call that had released the GIL",
    Cause.PREEMPTION: "the evaluation loop made the thread yield",
    Cause.UNKNOWN: "this build's evaluation loop could not be told apart",
}


def c_header() -> str:
    """Return ``probes/gil/abi.bpf.h``."""
    causes = (
        Row(f"AFTER_{cause.name}", cause.number, words) for cause, words in _CAUSE_COMMENTS.items()
    )
    convoy = Row(
        "CONVOY", Kind.CONVOY.number, "after a blocking call, for a switch interval or more"
    )
    # The last one is noticed by user space alone.
    losses = (
        Row(loss.name if loss.is_invalid else f"LOST_{loss.name}", loss.number)
        for loss in Loss
        if loss is not Loss.PROBES_GONE
    )
    drop_latency = Row(Quantity.DROP_LATENCY.name, Quantity.DROP_LATENCY.value)
    return header(
        "gil/abi.py",
        constants(
            {
                **histogram_constants(),
                "STACK_DEPTH": (STACK_DEPTH, "frames that are noted; a power of two"),
                "NEXT_PROGRAMS": (len(NextProgram), ""),
                "QUOTAS": (QUOTAS, "room for them"),
                "SPAN_IS_HOLD": (SPAN_IS_HOLD, "in place of a wait's kind"),
                "SPAN_SECOND_SHIFT": (SECOND_SHIFT, "2^30 ns are what spans call a second"),
                "REGION_PLACES": (REGION_PLACES, "of a process' threads, and the head"),
                "REGION_TRIES": (REGION_TRIES, "in a row, one of which a thread may have"),
                "REGION_HOMES": (REGION_PLACES - REGION_TRIES, "where these rows begin"),
                "OWNER_WITHOUT_CODE": (
                    frame_marks.FIRST_OWNER_WITHOUT_CODE,
                    "from this value on a frame's owner is C code",
                ),
                "LONGEST_ROUTE": (LONGEST_ROUTE, "with the zero at its end; a power of two"),
                "REFERENCE_FLAGS": (
                    frame_marks.REFERENCE_FLAGS,
                    "low bits of a _PyStackRef (3.14)",
                ),
            }
        ),
        CEnum("cause", "Why a thread waits for the GIL.", tuple(causes)).declaration(),
        CEnum(
            "kind",
            "What kind of loss a finished wait was: 0 to 2 as in enum cause.",
            (convoy, Row("KINDS", len(Kind))),
        ).declaration(),
        CEnum(
            "quantity", "What a histogram is of: 0 to 2 are waits, by cause.", (drop_latency,)
        ).declaration(),
        CEnum("loss", "Why an event was lost, or found invalid.", tuple(losses)).declaration(),
        CEnum.of(NoticeKind, "notice_kind", "NOTICE_").declaration(),
        CEnum.of(RawStackState, "stack_state", "STACK_").declaration(),
        CEnum.of(StackId, "stack_id", "STACK_").declaration(),
        CEnum.of(NextProgram, "next_program_number").declaration(),
        CEnum.of(HeldTraceKind, "held_trace_kind").declaration(),
        CEnum.of(Quota, "quota", "QUOTA_").declaration(),
        CEnum.of(TargetFlag, "target_flag", "TARGET_").declaration(),
        NOTICE.declaration(),
        STACK.declaration(),
        SPAN.declaration(),
        REGION_HEAD.declaration(),
        REGION_PLACE.declaration(),
    )
