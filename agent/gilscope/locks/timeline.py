"""Waits for locks and stops of the world one by one: keeps what the probes send of them."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from gilscope.locks.abi import SleepKind, SpanKind
from gilscope.locks.totals import RawLocks, in_flight, wait_of
from gilscope.model.gil import Record
from gilscope.model.locks import LockSpan, LockTimeline, StopCause, StopSpan
from gilscope.model.stack import UNKNOWN_STACK, Stack

__all__ = ["MOST_SPANS", "LockTimelines"]

MOST_SPANS: Final = 250_000
"""That are kept, of all processes together; each takes 56 bytes, and a kilobyte for as long as a
report is made of it."""


_SHIFT, _REASON = 32, (1 << 32) - 1
"""Of `_Kept.kind`."""


class _Kept(NamedTuple):
    """One span, in numbers."""

    began_ns: int
    ended_ns: int
    stack: int
    released: int
    tid: int
    kind: int
    """Of `SpanKind`, and behind that of `SleepKind` or whether it is a collection."""
    type: int
    """Its number in `LockTimelines`."""


class LockTimelines:
    """What has been sent of all processes, as numbers: objects would take three times as much.

    When there is no more room the first spans stay, and further ones are counted.
    """

    def __init__(self, most: int = MOST_SPANS) -> None:
        """Keep *most* spans."""
        self._most = most
        self._kept = 0
        self._values: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        self._no_room: Counter[int] = Counter()
        self._types: dict[bytes, int] = {}

    def add(self, record: Record) -> None:
        """Take over one record of the ring."""
        pid = record["tgid"]
        if self._kept >= self._most:
            self._no_room[pid] += 1
            return
        self._kept += 1
        type_name = record["type"].split(b"\0", 1)[0]
        self._values[pid].extend(
            _Kept(
                record["began_ns"],
                record["ended_ns"],
                record["stack"],
                record["released"],
                record["tid"],
                record["kind"] << _SHIFT | record["reason"],
                self._types.setdefault(type_name, len(self._types)),
            )
        )

    def timeline(
        self, pid: int, raw: RawLocks, stacks: Mapping[int, Stack], *, has_flights: bool
    ) -> LockTimeline:
        """Return the spans of process *pid*; *stacks* are by their ids.

        Of *raw*, what its tables hold, come how many were dropped, and what is in flight where it
        *has_flights*.
        """
        names = [name.decode(errors="replace") for name in self._types]
        values = iter(self._values.get(pid, ()))
        kept = [_Kept._make(each) for each in zip(*[values] * len(_Kept._fields), strict=True)]
        kept.sort(key=lambda each: each.ended_ns)
        waits = [
            _wait(each, SleepKind(each.kind & _REASON), names[each.type], stacks)
            for each in kept
            if each.kind >> _SHIFT == SpanKind.WAIT
        ]
        waits += _flights(raw, stacks) if has_flights else ()
        stops = (_stop(each, stacks) for each in kept if each.kind >> _SHIFT != SpanKind.WAIT)
        dropped = self._no_room[pid] + raw.lost.get("span", 0)
        return LockTimeline(_joined(waits), tuple(stops), dropped)

    def forget(self, pid: int) -> None:
        """Give up what is kept of process *pid*."""
        self._kept -= len(self._values.pop(pid, ())) // len(_Kept._fields)
        del self._no_room[pid]


def _joined(parts: Iterable[LockSpan]) -> tuple[LockSpan, ...]:
    """Return *parts* of waits, which are in the order of their ends, those of one wait as one.

    A mutex may take several sleeps. Whoever has released it last has ended the wait.
    """
    whole: list[LockSpan] = []
    latest: dict[int, int] = {}
    for part in parts:
        at = latest.get(part.tid)
        if at is not None and _is_behind(part, whole[at]):
            whole[at] = replace(part, began_ns=whole[at].began_ns)
        else:
            latest[part.tid] = len(whole)
            whole.append(part)
    return tuple(sorted(whole, key=lambda each: each.ended_ns))


def _is_behind(part: LockSpan, before: LockSpan) -> bool:
    what = part.kind, part.type, part.stack
    return part.began_ns == before.ended_ns and what == (before.kind, before.type, before.stack)


def _flights(raw: RawLocks, stacks: Mapping[int, Stack]) -> Iterable[LockSpan]:
    for tid, thread in raw.threads.items():
        flight = in_flight(tid, thread, raw.at_ns)
        if flight is not None:
            (_, kind, type_name, stack, released), sums = flight
            ends = raw.at_ns - sums.wait_ns, raw.at_ns
            span = _Kept(*ends, stack, released, tid, kind, 0)
            yield _wait(span, SleepKind(kind), type_name, stacks)


def _wait(span: _Kept, sleep: SleepKind, type_name: str, stacks: Mapping[int, Stack]) -> LockSpan:
    stack, released = (stacks.get(each, UNKNOWN_STACK) for each in (span.stack, span.released))
    kind, shown = wait_of(sleep, type_name, stack)
    return LockSpan(span.tid, kind, shown, span.began_ns, span.ended_ns, stack, released)


def _stop(span: _Kept, stacks: Mapping[int, Stack]) -> StopSpan:
    return StopSpan(
        tid=span.tid,
        cause=StopCause.COLLECTION if span.kind & 1 else StopCause.OTHER,
        stands=span.kind >> _SHIFT == SpanKind.STANDING,
        began_ns=span.began_ns,
        ended_ns=span.ended_ns,
        stack=stacks.get(span.stack, UNKNOWN_STACK),
    )
