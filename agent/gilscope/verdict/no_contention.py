"""What it means that no thread had to wait for the GIL, and that it was held all the same."""

from collections import Counter
from collections.abc import Iterator

from gilscope.model.gil import HolderSamples
from gilscope.naming.event_loops import event_loop

__all__ = ["no_contention"]

_BUSY = 0.5


def no_contention(samples: HolderSamples | None, places: str = "below") -> Iterator[str]:
    """Yield in lines what *samples* of the holders say; nothing where there are none.

    *places* is where these stand in the report.
    """
    if samples is None:
        return
    in_loops: Counter[str | None] = Counter()
    for held in samples.holders:
        in_loops[event_loop(held.holder.frames)] += held.held_ns
    busy_ns = _BUSY * samples.sampled_ns
    yield "That is no contention: whatever is slow here does not wait for the GIL."
    kept = [loop for loop, ns in in_loops.items() if loop is not None and ns >= busy_ns]
    if kept:
        yield f"But code kept the {kept[0]} event loop for most of the time: all other tasks of the"
        yield "loop waited for that. What helps: await, a thread or a process for that code."
    elif in_loops.total() >= max(1, busy_ns):
        yield f"Python code has the GIL for most of the time: what costs that time is {places}."
