"""What reports say of a lock that those who wait do not ask for, as that of CPython 2.7."""

from collections.abc import Iterator

from gilscope.model.gil import Recording, Tally
from gilscope.text.units import seconds

__all__ = ["failed_wakeup_lines", "no_lock_lines", "tick_advice"]


def failed_wakeup_lines(recording: Recording) -> Iterator[str]:
    """Yield how often threads were woken for nothing; nothing where that cannot be."""
    threads = recording.observation.totals.threads
    failed = sum((thread.failed_wakeups for thread in threads), Tally())
    if not (recording.observation.process.wakes_in_vain and failed.count):
        return
    waits = max(1, sum(thread.waits for thread in threads))
    yield (
        f"Failed wake-ups: {failed.count}, {failed.count / waits:.1f} for each wait. Threads were "
        "woken, found the GIL"
    )
    yield f"held again, and waited {seconds(failed.ns)} from there on."


def tick_advice(recording: Recording) -> Iterator[str]:
    """Yield why threads wait for such a lock, and what helps, in lines."""
    if not recording.observation.process.wakes_in_vain:
        return
    interval = recording.observation.totals.check_interval
    often = "after some bytecodes" if interval is None else f"every {interval} bytecodes"
    yield f"CPython 2.7 releases the GIL {often} and acquires it back at once, mostly before those"
    yield "that wait; while a signal is pending, at each bytecode. What helps: processes; one CPU"
    yield "for all threads (taskset -c 0), which then do not compete; fewer releases while threads"
    yield "compute (sys.setcheckinterval(10000)); Python 3."


def no_lock_lines(recording: Recording) -> Iterator[str]:
    """Yield that there has been no lock; nothing where there is one."""
    observation = recording.observation
    if observation.process.wakes_in_vain and not observation.totals.gils:
        yield "The process has no GIL yet: CPython 2.7 makes it when the first thread is started."
