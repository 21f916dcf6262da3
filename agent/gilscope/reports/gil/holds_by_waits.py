"""Tells who held the GIL out of waits alone.

Who gets it at the end of a wait has it until somebody else gets it, or until it waits for it again.
Who acquires it without waiting is not seen; so while nobody waits, that is an assumption.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.model.timeline import Span
from gilscope.values import dataclass

__all__ = ["Hold", "drop_requests", "exact_holds", "holds_by_waits"]


@dataclass(frozen=True, slots=True)
class Hold:
    """A stretch of time in which one thread held a lock."""

    tid: int
    interpreter_id: int
    began_ns: int
    ended_ns: int
    stack: Stack = UNKNOWN_STACK
    """Where it stood when somebody began to wait for it."""
    is_assumed: bool = False
    """Nobody waited meanwhile, so another thread may have held it too."""


def exact_holds(spans: Iterable[Span]) -> list[Hold]:
    """Return the holds that are among *spans*."""
    spans = list(spans)
    behind = {
        lock: _behind(span for span in spans if span.interpreter_id == lock)
        for lock in {span.interpreter_id for span in spans}
    }
    holds = []
    for span in spans:
        if span.kind is None:
            waits = behind[span.interpreter_id]
            stack = _first_behind(waits, span.tid, span.began_ns, span.ended_ns)
            holds.append(Hold(span.tid, span.interpreter_id, span.began_ns, span.ended_ns, stack))
    return holds


def holds_by_waits(spans: Iterable[Span], until_ns: int) -> list[Hold]:
    """Return who held the GIL up to *until_ns*, by the waits among *spans*, each lock by itself.

    A wait that ends then or later has not led to a hold.
    """
    locks: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        if span.kind is not None:
            locks[span.interpreter_id].append(span)
    return [hold for waits in locks.values() for hold in _of_lock(waits, until_ns)]


def drop_requests(spans: Iterable[Span], interval_ns: int) -> list[tuple[int, int]]:
    """Return which thread asked the holder to drop the GIL, and when, the first time of each wait.

    It does at the end of a switch interval of waiting in which nobody has got the lock.
    """
    waits = [span for span in spans if span.kind is not None]
    switches = sorted((span.interpreter_id, span.ended_ns) for span in waits)
    asked = []
    for span in waits if interval_ns else ():
        lock = span.interpreter_id
        for at_ns in range(span.began_ns + interval_ns, span.ended_ns, interval_ns):
            before = bisect_right(switches, (lock, at_ns - interval_ns))
            if bisect_right(switches, (lock, at_ns)) == before:
                asked.append((span.tid, at_ns))
                break
    return asked


def _of_lock(waits: Sequence[Span], until_ns: int) -> Iterator[Hold]:
    acquisitions = sorted(
        (span for span in waits if span.ended_ns < until_ns), key=lambda span: span.ended_ns
    )
    begins: dict[int, list[int]] = defaultdict(list)
    for span in sorted(waits, key=lambda span: span.began_ns):
        begins[span.tid].append(span.began_ns)
    waited = _union((span.began_ns, span.ended_ns) for span in waits)
    behind = _behind(waits)
    ends = [*(span.ended_ns for span in acquisitions), until_ns]
    for span, next_ns in zip(acquisitions, ends[1:], strict=True):
        own = begins[span.tid]
        at = bisect_right(own, span.ended_ns)
        ended_ns = min(next_ns, own[at]) if at < len(own) else next_ns
        stack = _first_behind(behind, span.tid, span.ended_ns, ended_ns)
        for began_ns, part_ended_ns, is_assumed in _split(span.ended_ns, ended_ns, waited):
            yield Hold(span.tid, span.interpreter_id, began_ns, part_ended_ns, stack, is_assumed)


def _behind(spans: Iterable[Span]) -> list[tuple[int, int, Stack]]:
    """Return when which thread began to wait, and where the holder stood, by time."""
    known = ((span.began_ns, span.tid, span.holder) for span in spans if span.holder.frames)
    return sorted(known, key=lambda each: each[:2])


def _first_behind(
    behind: Sequence[tuple[int, int, Stack]], tid: int, began_ns: int, ended_ns: int
) -> Stack:
    at = bisect_right(behind, began_ns, key=lambda each: each[0])
    for waited_ns, waiter, stack in behind[at:]:
        if waited_ns >= ended_ns:
            break
        if waiter != tid:
            return stack
    return UNKNOWN_STACK


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for began_ns, ended_ns in sorted(spans):
        if joined and began_ns <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], ended_ns)
        else:
            joined.append((began_ns, ended_ns))
    return joined


def _split(
    began_ns: int, ended_ns: int, waited: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a hold in which somebody waited, and those in which nobody did."""
    first = max(0, bisect_right(waited, began_ns, key=lambda each: each[0]) - 1)
    at_ns = began_ns
    for waited_ns, over_ns in chain(waited[first:], [(ended_ns, ended_ns)]):
        if waited_ns > at_ns:
            yield at_ns, min(waited_ns, ended_ns), True
        if waited_ns >= ended_ns:
            return
        if over_ns > at_ns:
            part_ended_ns = min(over_ns, ended_ns)
            yield max(at_ns, waited_ns), part_ended_ns, False
            at_ns = part_ended_ns
        if at_ns >= ended_ns:
            return
