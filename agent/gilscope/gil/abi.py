"""Every way in which an event can be lost or found invalid, shared with the BPF programs."""

from enum import Enum

__all__ = ["Loss", "defines"]


class Loss(Enum):
    """A reason; the order is the number that the programs are compiled with."""

    READ_FAULT = "read_fault"
    """A page of the target's memory was not readable at that instant."""
    TABLE_FULL = "table_full"
    """A BPF map had no room for another thread, lock or histogram."""
    BEGAN_UNSEEN = "began_unseen"
    """A wait had begun before the probes were there; what they saw of it is counted."""
    ABANDONED = "abandoned"
    """A thread ended while it waited; its wait is counted up to its end."""
    NOTICE = "notice"
    """The ring of notices was full; the agent looks for itself instead."""
    RETURN_UNKNOWN = "return_unknown"
    """Libc method: the place that a wait returns to was not probed yet."""
    LOCK_UNKNOWN = "lock_unknown"
    """Which lock a thread uses was not known yet: it was made to yield, or took a new one."""
    THREAD_REUSED = "thread_reused"
    """A dead thread's number went to another process before its totals were read."""
    STACK_TORN = "stack_torn"
    """A thread's stack changed too much while it was read; that end of the wait is unknown."""
    STACK_UNKNOWN = "stack_unknown"
    """Whose stack it would have been could not be found out; that end of the wait is unknown."""
    STACK_UNSENT = "stack_unsent"
    """The ring of stacks was full; the stack is sent the next time that it is met."""
    EDGE = "edge"
    """A BPF map had no room for another pair of stacks; who kept whom waiting is not noted."""
    SPAN = "span"
    """The ring of the timeline was full; a wait or a hold is counted and not drawn."""
    QUOTA = "quota"
    """The process had as many entries of a BPF map as one may have; others lose nothing by it."""
    INVALID_MUTEX = "invalid_mutex"
    """A wait whose mutex is not the lock's own: the probes are in the wrong place."""
    INVALID_LOCKED = "invalid_locked"
    """A wait for a lock that is not held: the probes are in the wrong place."""
    INVALID_INTERVAL = "invalid_interval"
    """A wait for a lock with an impossible switch interval: the probes are in the wrong place."""
    INVALID_HOLDER = "invalid_holder"
    """A lock taken while another thread held it, or let go by one that did not hold it."""
    PROBES_GONE = "probes_gone"
    """The probes had gone from the code of the process; what they had counted was given up, and
    they were put in once more. It is the agent that notices."""

    @property
    def number(self) -> int:
        """The number that the programs use."""
        return tuple(Loss).index(self)

    @property
    def is_invalid(self) -> bool:
        """Whether it proves that the probes do not sit where they should."""
        return self.name.startswith("INVALID_")


def defines() -> dict[str, int]:
    """Return the macros that give the programs these numbers."""
    return {
        loss.name if loss.is_invalid else f"LOST_{loss.name}": loss.number
        for loss in Loss
        if loss is not Loss.PROBES_GONE
    }
