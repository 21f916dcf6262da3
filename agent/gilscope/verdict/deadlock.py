"""Finds threads that wait for each other in a circle: for the GIL, and for locks of C code."""

from collections.abc import Mapping, Sequence

from gilscope.model.moment.dump import Awaited, DumpedGil, DumpedThread, Step

__all__ = ["deadlocks_of"]


def deadlocks_of(
    threads: Sequence[DumpedThread], gils: Sequence[DumpedGil]
) -> tuple[tuple[Step, ...], ...]:
    """Return each circle once, beginning with a thread that holds a GIL where there is one.

    A thread waits for one thing at a time, so each leads to one other at the most, and circles
    share no thread.
    """
    holder_of = {each.gil.cond: each.holder_tid for each in gils if each.is_held}
    holders = set(holder_of.values())
    steps = {each.tid: step for each in threads if (step := _step(each, holder_of)) is not None}
    found: list[tuple[Step, ...]] = []
    judged: set[int] = set()
    # Who holds a GIL is looked at first, so that its circle begins with it.
    for tid in sorted(steps, key=lambda each: (each not in holders, each)):
        path: list[int] = []
        at: int | None = tid
        while at is not None and at in steps and at not in judged:
            judged.add(at)
            path.append(at)
            at = steps[at][1]
        if at in path:
            found.append(tuple(steps[each][0] for each in path[path.index(at) :]))
    return tuple(found)


def _step(
    thread: DumpedThread, holder_of: Mapping[int, int | None]
) -> tuple[Step, int | None] | None:
    """Return what *thread* waits for, and who holds it; None: it waits for no lock."""
    if thread.awaited is Awaited.GIL and thread.gil_cond is not None:
        step = Step(thread.tid, Awaited.GIL, thread.gil_cond)
        return step, holder_of.get(thread.gil_cond)
    if thread.awaited is Awaited.LOCK and thread.lock is not None:
        return Step(thread.tid, Awaited.LOCK, thread.lock.address), thread.lock.owner_tid
    return None
