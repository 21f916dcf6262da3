"""Adds to a dump what a tracer has counted: for how long, and who kept whom waiting before."""

from dataclasses import replace

from gilscope.model.gil import Edge, GilObservation
from gilscope.model.moment.dump import Awaited, Dump, DumpedThread, Trigger

__all__ = ["with_figures"]

_MOST_PAIRS = 50


def with_figures(
    dump: Dump, seen: GilObservation, lately: GilObservation, *, later_ns: int, trigger: Trigger
) -> Dump:
    """Return *dump* with what *seen* says of the moment *later_ns* after it.

    *lately* is the same, less what was before the last seconds; *trigger* is why it was taken.
    """
    waiting_ns = {
        thread.tid: thread.waiting_ns - later_ns
        for thread in seen.totals.threads
        if thread.is_alive and thread.waiting_ns > later_ns
    }
    held_ns = _held_ns(seen) - later_ns
    gils, threads = dump.gils, dump.threads
    # Whose waits and drop requests these are cannot be told where there are several.
    if len(gils) == 1:
        (gil,) = gils
        threads = tuple(
            _waiting(thread, gil.gil.cond, waiting_ns.get(thread.tid)) for thread in threads
        )
        waiting = tuple(each.tid for each in threads if each.awaited is Awaited.GIL)
        known_ns = held_ns if gil.is_held and held_ns > 0 else None
        gils = (replace(gil, waiting_tids=waiting, held_ns=known_ns),)
    pairs = sorted((edge for edge in lately.totals.edges if edge.lost.ns), key=_cost)
    waited_ns = max(trigger.waited_ns, waiting_ns.get(trigger.tid, 0))
    return replace(
        dump,
        gils=gils,
        threads=threads,
        trigger=replace(trigger, waited_ns=waited_ns),
        pairs=tuple(pairs[:_MOST_PAIRS]) if lately.totals.has_stacks else None,
        pairs_ns=lately.totals.at_ns - lately.since_ns,
    )


def _cost(edge: Edge) -> int:
    return -edge.lost.ns


def _waiting(thread: DumpedThread, cond: int, ns: int | None) -> DumpedThread:
    if ns is None:
        return thread
    if thread.call is None:
        # It had just woken up, to ask for the GIL again, and was ready when it was looked at.
        waits = "waits for the GIL"
        thread = replace(thread, awaited=Awaited.GIL, gil_cond=cond, call_words=waits)
    return replace(thread, waiting_ns=ns) if thread.awaited is Awaited.GIL else thread


def _held_ns(seen: GilObservation) -> int:
    """Return for how long the GIL has been held at the least: as long as a request is unanswered.

    A window knows it exactly, where one is open.
    """
    asked = [drop.in_flight_ns for drop in seen.totals.slow_drops]
    held = [gil.holds.holding_ns for gil in seen.totals.gils if gil.holds is not None]
    return max((*asked, *held), default=0)
