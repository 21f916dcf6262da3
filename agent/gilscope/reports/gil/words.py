"""What reports call the kinds of waits, and what was not counted in full."""

from gilscope.model.kinds import Kind

__all__ = ["KIND_NAMES", "KIND_WORDS", "LOST_WORDS"]

KIND_NAMES = {
    Kind.CONVOY: "convoy",
    Kind.BLOCKING_CALL: "blocking call",
    Kind.PREEMPTION: "preemption",
    Kind.UNKNOWN: "unknown",
}
"""Short names, in the order in which they are told."""

KIND_WORDS = {
    Kind.CONVOY: "came back from a blocking call and queued for a switch interval or longer",
    Kind.BLOCKING_CALL: "came back from a blocking call and waited for less than that",
    Kind.PREEMPTION: "was preempted by another thread",
    Kind.UNKNOWN: "waited for an unknown cause",
}
"""What the waiter did."""

LOST_WORDS = {
    "read_fault": "events lost because memory could not be read",
    "table_full": "events lost because a table was full",
    "quota": "events lost because the process had used up its share of a table",
    "began_unseen": "waits begun before the recording, counted without their first part",
    "abandoned": "waits cut short by the end of their thread, counted up to there",
    "notice": "notices lost because their queue was full",
    "lock_unknown": "yields and holds lost because their lock was not known yet",
    "thread_reused": "dead threads lost because their numbers were used again",
    "stack_torn": "stacks not known because they changed while they were read",
    "stack_unknown": "stacks not known because their thread was not known",
    "stack_unsent": "stacks that came later because their queue was full",
    "edge": "waits whose two ends were not noted because a table was full",
    "span": "waits or holds that are missing from the timeline",
    "invalid_holder": "holds of which the kernel left out the beginning or the end",
    "probes_gone": "times that all figures were dropped because the probes had gone from the code",
    "return_unknown": "waits lost before the libc method had learned where they return",
}
"""By the reasons of `ProcessTotals.lost_events`."""
