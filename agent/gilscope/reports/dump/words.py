"""What a dump comes to, in words: who holds the GIL, who waits for it, and whether for ever."""

from collections.abc import Iterator, Sequence

from gilscope.model.moment.dump import Awaited, Dump, DumpedGil, DumpedThread, Step
from gilscope.model.stack import Frame, Stack
from gilscope.naming.origins import Origin, origin_of
from gilscope.naming.places import SiteNames
from gilscope.text.printable import printable
from gilscope.text.units import counted, short_duration

__all__ = ["deadlock_words", "place", "state_words", "verdict", "who"]

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "ended",
    "X": "ended",
    "I": "idle",
}


def verdict(dump: Dump) -> Iterator[str]:
    """Yield the answer: deadlocks first, else who holds each GIL and who waits for it."""
    for circle in dump.deadlocks:
        yield f"deadlock: {deadlock_words(circle, dump)}"
    stuck = {step.tid for circle in dump.deadlocks for step in circle}
    for gil in dump.gils:
        if gil.holder_tid is None or gil.holder_tid not in stuck:
            yield _holder_words(gil, dump)


def deadlock_words(circle: Sequence[Step], dump: Dump) -> str:
    """Return who waits for whom in *circle*, which begins with who holds the GIL if anyone does."""
    names = [_short(step.tid, dump) for step in circle]
    following = [*names[1:], names[0]]
    if [step.awaited for step in circle] == [Awaited.LOCK, Awaited.GIL]:
        return (
            f"{who(dump.thread(circle[0].tid))} holds the GIL and waits for a native lock that "
            f"{who(dump.thread(circle[1].tid))} holds; thread {circle[1].tid} waits for the GIL"
        )
    return "; ".join(
        f"{who(dump.thread(step.tid))} waits for {_lock_words(step)}, which {holder} holds"
        for step, holder in zip(circle, following, strict=True)
    )


def who(thread: DumpedThread | None) -> str:
    """Return number, role and place of *thread*."""
    if thread is None:
        return "an unknown thread"
    at = place(thread.stack)
    return f"thread {thread.tid} ({printable(thread.role)}{', at ' if at else ''}{at})"


def place(stack: Stack | None) -> str:
    """Return the innermost frame of the application in *stack*, or the innermost of all."""
    if stack is None or not stack.frames:
        return ""
    return printable(SiteNames().site(owner_frame(stack)))


def owner_frame(stack: Stack) -> Frame:
    """Return the innermost frame of the application, or the innermost of all."""
    of_application = (each for each in stack.frames if origin_of(each) is Origin.APPLICATION)
    return next(of_application, stack.frames[0])


def state_words(thread: DumpedThread) -> str:
    """Return what *thread* does as far as the kernel tells, and what it waits for."""
    state = _STATES.get(thread.state, f"in state {printable(thread.state)}")
    if not thread.call_words:
        return state
    if thread.lock is not None and thread.lock.owner_tid is not None:
        return f"{thread.call_words} that thread {thread.lock.owner_tid} holds"
    if thread.awaited is not None:
        waiting_ns = thread.waiting_ns
        waiting = "" if waiting_ns is None else f", for {short_duration(waiting_ns)} so far"
        return f"{thread.call_words}{waiting}"
    return f"{state}: {thread.call_words}"


def _holder_words(gil: DumpedGil, dump: Dump) -> str:
    name = "the GIL"
    if len(dump.gils) > 1:
        name = f"the GIL of interpreter {gil.gil.interpreter_id}"
    waiting = counted(len(gil.waiting_tids), "thread waits", "threads wait")
    if not gil.is_held:
        return f"nobody holds {name}" + (f"; {waiting} for it" if gil.waiting_tids else "")
    holder = dump.thread(gil.holder_tid)
    since = "" if gil.held_ns is None else f", for {short_duration(gil.held_ns)} at the least,"
    doing = "" if holder is None else f" and is {_doing(holder)}"
    return f"{who(holder)} holds {name}{since}{doing}; {waiting} for it"


def _doing(holder: DumpedThread) -> str:
    if holder.awaited is Awaited.LOCK:
        return f"blocked: {state_words(holder)}"
    return state_words(holder)


def _short(tid: int, dump: Dump) -> str:
    thread = dump.thread(tid)
    return f"thread {tid}" if thread is not None else "an unknown thread"


def _lock_words(step: Step) -> str:
    return "the GIL" if step.awaited is Awaited.GIL else f"a native lock at {step.address:#x}"
