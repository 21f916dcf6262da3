"""What threads have lost waiting for locks as samples of a profile."""

from collections.abc import Iterator

import gilscope
from gilscope.model.locks import LockRecording
from gilscope.model.stack import Stack
from gilscope.naming.application import application_frame
from gilscope.naming.lock_words import lost_words, short_words
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import levels
from gilscope.reports.gil.profiles.profile import Profile, ValueType, location
from gilscope.reports.locks.losses import lost_waits
from gilscope.text.printable import printable
from gilscope.text.units import seconds

__all__ = ["LOCK_TYPES", "LOCK_WAIT", "add_locks", "comments_on_locks"]

LOCK_WAITS = ValueType("lock_waits", "count")
LOCK_WAIT = ValueType("lock_wait", "nanoseconds")
LOCK_TYPES = (LOCK_WAITS, LOCK_WAIT)


def add_locks(profile: Profile, recording: LockRecording) -> None:
    """Add all that *recording* has lost, each wait at the stack that waited."""
    process, names = recording.observation.process, SiteNames()
    program = printable(process.name)

    def place(stack: Stack) -> str:
        return printable(names.owner(application_frame(stack, recording.application), stack))

    for wait in lost_waits(recording):
        labels = {"process": program, "pid": str(process.pid), "lock": short_words(wait)}
        if wait.held.is_known:
            labels["holder"] = place(wait.held)
        if wait.released.is_known:
            labels["releaser"] = place(wait.released)
        stack = [location(program, level) for level in reversed(levels(wait.stack))]
        profile.add(stack, labels, {LOCK_WAITS: wait.waits, LOCK_WAIT: wait.wait_ns})


def comments_on_locks(recording: LockRecording) -> Iterator[str]:
    """Yield what no sample of *recording* says."""
    seen = recording.observation
    whose = f"{printable(seen.process.name)}, pid {seen.process.pid}"
    observed, passed = seen.observed_ns, recording.duration_ns
    of_time = f"{seconds(observed)} of {seconds(passed)} observed"
    yield f"gilscope {gilscope.__version__}: {whose}: locks, {of_time}"
    if seen.invalid:
        yield f"{whose}: locks: not seen to the end: {printable(seen.invalid)}"
    lost = {} if seen.totals is None else seen.totals.lost_events
    for reason, count in lost.items():
        yield f"{whose}: locks: not counted in full: {lost_words(reason, count)}"
