"""Says what a holder did from one sample to the next, by what the kernel counts of its thread."""

from gilscope.values import dataclass

__all__ = ["Gap", "Seen", "gap_between"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A thread at one sample."""

    is_asleep: bool
    """Whether it sleeps, and holds the lock meanwhile."""
    cpu_ns: int
    """On a CPU so far; the kernel may be a tick late with it."""
    queued_ns: int
    """Runnable so far without a CPU; the kernel adds it when the thread gets one."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The time from one sample of a hold to the next, in parts."""

    running_ns: int
    asleep_ns: int
    no_cpu_ns: int


def gap_between(before: Seen, now: Seen, gap_ns: int, *, is_off_cpu: bool) -> Gap:
    """Return the parts of *gap_ns*, through which one thread held the lock.

    *is_off_cpu*: it was found to have no CPU now, although it could run.
    """
    queued_ns = min(gap_ns, max(0, now.queued_ns - before.queued_ns))
    ran_ns = min(gap_ns - queued_ns, max(0, now.cpu_ns - before.cpu_ns))
    rest_ns = gap_ns - queued_ns - ran_ns
    if now.is_asleep:
        return Gap(ran_ns, rest_ns, queued_ns)
    if is_off_cpu:
        # The wait for a CPU that is in flight has not been counted yet.
        return Gap(ran_ns, 0, queued_ns + rest_ns)
    return Gap(ran_ns + rest_ns, 0, queued_ns)
