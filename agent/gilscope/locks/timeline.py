"""Waits for locks and stops of the world one by one: keeps what the probes send of them."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from gilscope.locks.abi import SleepKind, SpanKind
from gilscope.locks.totals import RawLocks, in_flight, wait_of
from gilscope.model.locks import LockMoment, LockSpan, LockTimeline, StopCause, StopSpan
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.series.moments.seconds import Seconds
from gilscope.series.moments.worst_window import FAR_NS, MINUTE_NS, MOMENT_NS, worst_within
from gilscope.values import Record

__all__ = ["MOST_OF_MOMENTS", "MOST_SPANS", "LockTimelines"]

MOST_SPANS: Final = 250_000
"""That are kept, of all processes together; each takes 64 bytes, and a kilobyte for as long as a
report is made of it."""
MOST_OF_MOMENTS: Final = 20_000
"""Where only the worst moment is asked for: to choose it takes some tenths of a second."""


_SHIFT, _REASON = 32, (1 << 32) - 1
"""Of `_Kept.kind`."""


class _Kept(NamedTuple):
    """One span, in numbers."""

    began_ns: int
    ended_ns: int
    stack: int
    released: int
    held: int
    tid: int
    kind: int
    """Of `SpanKind`, and behind that of `SleepKind` or whether it is a collection."""
    type: int
    """Its number in `LockTimelines`."""


class LockTimelines:
    """What has been sent of all processes, as numbers: objects would take three times as much.

    When there is no more room the first spans stay, and further ones are counted. Where only the
    worst moment is asked for, that is what stays, and the last spans; of the last minutes, that of
    each.
    """

    def __init__(
        self,
        stacks_of: Callable[[int], Mapping[int, Stack]],
        most: int | None = None,
        *,
        a_second: int | None = None,
        for_ns: int | None = None,
    ) -> None:
        """Keep *most* spans, of which *a_second* are sent; None: all of them are.

        With *for_ns* what ended so long before the last one makes room first. *stacks_of* tells the
        stacks of a process by their ids.
        """
        self._stacks_of = stacks_of
        if most is None:
            most = MOST_SPANS if a_second is None else MOST_OF_MOMENTS
        self._most = self._at_most = most
        self._for_ns = for_ns
        self._seconds = None if a_second is None else Seconds(a_second)
        self._kept = 0
        self._values: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        self._no_room: Counter[int] = Counter()
        self._types: dict[bytes, int] = {}
        self._type_names: list[bytes] = []

    def add(self, record: Record) -> None:
        """Take over one record of the ring."""
        pid = record["tgid"]
        if self._seconds is not None:
            self._seconds.add(record)
            if self._kept >= self._most:
                self._thin_out()
        if self._kept >= self._most:
            self._no_room[pid] += 1
            return
        self._kept += 1
        self._values[pid].extend(
            _Kept(
                record["began_ns"],
                record["ended_ns"],
                record["stack"],
                record["released"],
                record["held"],
                record["tid"],
                record["kind"] << _SHIFT | record["reason"],
                self._number_of(record["type"].split(b"\0", 1)[0]),
            )
        )

    def timeline(self, pid: int, raw: RawLocks, *, has_flights: bool) -> LockTimeline:
        """Return the spans of process *pid*.

        Of *raw*, what its tables hold, come how many were dropped, and what is in flight where it
        *has_flights*.
        """
        stacks = self._stacks_of(pid)
        kept = sorted(self._records(pid), key=lambda each: each.ended_ns)
        waits = [self._wait(each, stacks) for each in kept if _is_wait(each)]
        if has_flights:
            # What was in flight may have ended since.
            ended_ns = {each.tid: each.ended_ns for each in kept if _is_wait(each)}
            flights = _flights(raw, stacks)
            waits += [each for each in flights if ended_ns.get(each.tid, 0) <= each.began_ns]
        stops = (_stop(each, stacks) for each in kept if not _is_wait(each))
        dropped = self._no_room[pid] + raw.lost.get("span", 0)
        return LockTimeline(_joined(waits), tuple(stops), dropped)

    def moment(
        self, pid: int, raw: RawLocks, since_ns: int = 0, *, has_flights: bool
    ) -> LockMoment | None:
        """Return when threads of *pid* have waited most for each other; as for `timeline`.

        Of what has ended since *since_ns*. None where they have not.
        """
        timeline = self.timeline(pid, raw, has_flights=has_flights)
        waits = [
            wait
            for wait in timeline.waits
            # What began after the tables were read is in no other figure of the report.
            if wait.kind.is_contention and wait.ended_ns > since_ns and wait.began_ns < raw.at_ns
        ]
        # What has no place may have been idleness.
        known = [wait for wait in waits if wait.stack.frames] or waits
        times = ((wait.began_ns, wait.ended_ns) for wait in known)
        began_ns = worst_within(times, since_ns, raw.at_ns)
        if began_ns is None:
            return None
        ended_ns = min(began_ns + MOMENT_NS, raw.at_ns)
        return LockMoment(
            began_ns,
            ended_ns,
            tuple(each for each in waits if each.began_ns < ended_ns and each.ended_ns >= began_ns),
            tuple(
                each
                for each in timeline.stops
                if each.began_ns < ended_ns and each.ended_ns >= began_ns
            ),
            () if self._seconds is None else self._seconds.unseen(began_ns, ended_ns),
            0 if self._seconds is None else self._seconds.cut_since(since_ns),
            timeline.dropped,
        )

    def forget(self, pid: int) -> None:
        """Give up what is kept of process *pid*."""
        self._kept -= len(self._values.pop(pid, ())) // len(_Kept._fields)
        del self._no_room[pid]
        if len(self._type_names) > self._kept:
            self._keep({other: list(self._records(other)) for other in self._values})

    def _thin_out(self) -> None:
        # Half of the room is free again, so that it is not done all the time.
        most = max(1, self._at_most // (4 * len(self._values)))
        oldest_ns = 0 if self._for_ns is None else self._newest_ns() - self._for_ns
        self._keep({pid: self._worth_keeping(pid, most, oldest_ns) for pid in self._values})
        # The worst moments of hundreds of processes may take more.
        self._most = max(self._at_most, 2 * self._kept)

    def _keep(self, spans: Mapping[int, Sequence[_Kept]]) -> None:
        """Have nothing but *spans* of each process, and the names of their types.

        Programs make new types for as long as they run.
        """
        names, self._type_names = self._type_names, []
        self._types.clear()
        for pid, kept in spans.items():
            renumbered = (one._replace(type=self._number_of(names[one.type])) for one in kept)
            self._values[pid] = array("Q", chain.from_iterable(renumbered))
        self._kept = sum(map(len, spans.values()))

    def _newest_ns(self) -> int:
        ends = (
            values[_Kept._fields.index("ended_ns") :: len(_Kept._fields)]
            for values in self._values.values()
        )
        return max((max(each, default=0) for each in ends), default=0)

    def _worth_keeping(self, pid: int, most: int, oldest_ns: int) -> list[_Kept]:
        """Return the worst moment of *pid* since *oldest_ns*, and at most *most* of its last spans.

        Of the last minutes, that of each.
        """
        stacks = self._stacks_of(pid)
        kept = [one for one in self._records(pid) if one.ended_ns >= oldest_ns]
        part_ns = FAR_NS if self._for_ns is None else MINUTE_NS
        waits: dict[int, list[tuple[int, int]]] = {}
        for each in kept:
            # Where a thread stood may be read only later, and then it may have been idle.
            wait = self._wait(each, stacks) if _is_wait(each) else None
            if wait is not None and wait.kind.is_contention and wait.stack.frames:
                part = waits.setdefault(each.ended_ns // part_ns, [])
                part.append((each.began_ns, each.ended_ns))
        worst = [worst_within(part, oldest_ns) for part in waits.values()]
        moments = [(began_ns, began_ns + MOMENT_NS) for began_ns in worst if began_ns is not None]
        return [
            *(
                each
                for each in kept[:-most]
                if any(each.began_ns < end and each.ended_ns >= begin for begin, end in moments)
            ),
            *kept[-most:],
        ]

    def _records(self, pid: int) -> Iterator[_Kept]:
        values = iter(self._values.get(pid, ()))
        return map(_Kept._make, zip(*[values] * len(_Kept._fields), strict=True))

    def _wait(self, span: _Kept, stacks: Mapping[int, Stack]) -> LockSpan:
        type_name = self._type_names[span.type].decode(errors="replace")
        return _wait(span, SleepKind(span.kind & _REASON), type_name, stacks)

    def _number_of(self, type_name: bytes) -> int:
        number = self._types.get(type_name)
        if number is None:
            number = self._types[type_name] = len(self._type_names)
            self._type_names.append(type_name)
        return number


def _is_wait(span: _Kept) -> bool:
    return span.kind >> _SHIFT == SpanKind.WAIT


def _joined(parts: Iterable[LockSpan]) -> tuple[LockSpan, ...]:
    """Return *parts* of waits, which are in the order of their ends, those of one wait as one.

    A mutex may take several sleeps. Whoever has released it last has ended the wait.
    """
    whole: list[LockSpan] = []
    latest: dict[int, int] = {}
    for part in parts:
        at = latest.get(part.tid)
        if at is not None and _is_behind(part, whole[at]):
            whole[at] = replace(part, began_ns=whole[at].began_ns, held=whole[at].held)
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
            (_, kind, type_name, stack, released, held), sums = flight
            ends = raw.at_ns - sums.wait_ns, raw.at_ns
            span = _Kept(*ends, stack, released, held, tid, kind, 0)
            yield _wait(span, SleepKind(kind), type_name, stacks)


def _wait(span: _Kept, sleep: SleepKind, type_name: str, stacks: Mapping[int, Stack]) -> LockSpan:
    stack = stacks.get(span.stack, UNKNOWN_STACK)
    others = (stacks.get(each, UNKNOWN_STACK) for each in (span.released, span.held))
    kind, shown = wait_of(sleep, type_name, stack)
    return LockSpan(span.tid, kind, shown, span.began_ns, span.ended_ns, stack, *others)


def _stop(span: _Kept, stacks: Mapping[int, Stack]) -> StopSpan:
    return StopSpan(
        tid=span.tid,
        cause=StopCause.COLLECTION if span.kind & 1 else StopCause.OTHER,
        stands=span.kind >> _SHIFT == SpanKind.STANDING,
        began_ns=span.began_ns,
        ended_ns=span.ended_ns,
        stack=stacks.get(span.stack, UNKNOWN_STACK),
    )
