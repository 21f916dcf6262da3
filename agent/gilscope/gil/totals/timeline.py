"""Waits and holds one by one: keeps what the probes send, and makes pictures of it."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from operator import attrgetter, itemgetter

from gilscope.gil.abi import SPAN_IS_HOLD, Loss
from gilscope.gil.totals.moments import SentSpan, of_moment, worst_began_ns, worth_keeping
from gilscope.gil.totals.process_totals import thread_totals, waiting_since_ns
from gilscope.gil.totals.raw import RawProcess
from gilscope.model.gil import ENDED_INTERPRETER, Gil
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.model.timeline import Moment, Span, Timeline
from gilscope.series.moments.seconds import Seconds
from gilscope.series.moments.worst_window import FAR_NS, MINUTE_NS, MOMENT_NS
from gilscope.values import Record

__all__ = ["MOST_OF_MOMENTS", "MOST_SPANS", "Timelines"]

MOST_SPANS = 500_000
"""That are kept, of all processes together; each takes 56 bytes, and a kilobyte for as long as a
report is made of it."""
MOST_OF_MOMENTS = 20_000
"""Where only the worst moment is asked for: to choose it among them takes some hundredths of a
second."""

_FIELDS = SentSpan._fields
_of_record = itemgetter(*_FIELDS)
_ENDED = _FIELDS.index("ended_ns")

_KINDS: dict[int, Kind | None] = {**{kind.number: kind for kind in Kind}, SPAN_IS_HOLD: None}

_Key = tuple[int, int, bool]


class Timelines:
    """What has been sent of all processes, as numbers: objects would take three times as much.

    When there is no more room the first spans stay, and further ones are counted. Where only the
    worst moment is asked for, that is what stays, and the last spans; of the last minutes, that of
    each.
    """

    def __init__(
        self, most: int = MOST_SPANS, *, a_second: int | None = None, for_ns: int | None = None
    ) -> None:
        """Keep *most* spans, of which *a_second* are sent; None: all of them are.

        With *for_ns* what ended so long before the last one makes room first.
        """
        self._most = self._at_most = most
        self._for_ns = for_ns
        self._seconds = None if a_second is None else Seconds(a_second)
        self._kept = 0
        self._values: dict[int, array[int]] = defaultdict(_no_values)
        self._no_room: Counter[int] = Counter()
        self._going_on: dict[int, list[SentSpan]] = {}
        self._noted_ns: dict[int, int] = {}
        self._unsent: dict[int, int] = {}
        self._sent_waits: Counter[int] = Counter()

    def add(self, record: Record) -> None:
        """Take over one record of the ring: a wait or a hold that has ended."""
        pid = record["tgid"]
        if self._seconds is not None:
            self._seconds.add(record)
            if self._kept >= self._most:
                self._thin_out()
        self._sent_waits[pid] += record["kind"] != SPAN_IS_HOLD
        if self._kept >= self._most:
            self._no_room[pid] += 1
            return
        self._kept += 1
        self._values[pid].extend(_of_record(record))

    def note(self, pid: int, raw: RawProcess, now_ns: int) -> None:
        """Keep what is in flight in process *pid* at *now_ns*, until something newer is noted."""
        self._going_on[pid] = _in_flight(raw, now_ns)
        self._noted_ns[pid] = now_ns
        self._unsent[pid] = raw.lost.get(Loss.SPAN, 0)

    def timeline(
        self, pid: int, gils: Mapping[int, Gil], stack_of: Callable[[int], Stack]
    ) -> Timeline:
        """Return the spans of process *pid*, also those in flight, and how many more there were.

        *gils* are by address of ``cond``; *stack_of* turns the number of a stack into the stack.
        """
        spans = _spans(self._all_records(pid), gils, stack_of)
        return Timeline(spans, self._no_room[pid] + self._unsent.get(pid, 0))

    def moment(
        self,
        pid: int,
        gils: Mapping[int, Gil],
        stack_of: Callable[[int], Stack],
        since_ns: int = 0,
    ) -> Moment | None:
        """Return when process *pid* has waited most since *since_ns*; as for `timeline`.

        None where it has not.
        """
        # What was sent after the last note is not in what else is told of the process.
        until_ns = self._noted_ns.get(pid, FAR_NS)
        records = [
            one
            for one in self._all_records(pid)
            if one.ended_ns >= since_ns and one.began_ns < until_ns
        ]
        began_ns = worst_began_ns(records, since_ns, until_ns)
        if began_ns is None:
            return None
        ended_ns = min(began_ns + MOMENT_NS, until_ns)
        return Moment(
            began_ns,
            ended_ns,
            _spans(of_moment(records, began_ns, ended_ns), gils, stack_of),
            () if self._seconds is None else self._seconds.unseen(began_ns, ended_ns),
            chosen_among=(
                sum(one.kind != SPAN_IS_HOLD for one in records)
                if since_ns
                else self._sent_waits[pid]
            ),
            has_holds=any(record.kind == SPAN_IS_HOLD for record in records),
        )

    def forget(self, pid: int) -> None:
        """Give up what is kept of process *pid*."""
        self._kept -= len(self._values.pop(pid, ())) // len(_FIELDS)
        del self._no_room[pid]
        self._going_on.pop(pid, None)
        self._noted_ns.pop(pid, None)
        self._unsent.pop(pid, None)
        del self._sent_waits[pid]

    def _thin_out(self) -> None:
        # Half of the room is free again, so that it is not done all the time.
        most = self._at_most // (4 * len(self._values))
        newest_ns = max(
            max(values[_ENDED :: len(_FIELDS)], default=0) for values in self._values.values()
        )
        oldest_ns = 0 if self._for_ns is None else newest_ns - self._for_ns
        for pid in self._values:
            recent = [one for one in self._records(pid) if one.ended_ns >= oldest_ns]
            kept = worth_keeping(recent, most, FAR_NS if self._for_ns is None else MINUTE_NS)
            self._values[pid] = array("Q", chain.from_iterable(kept))
        self._kept = sum(len(values) // len(_FIELDS) for values in self._values.values())
        # The worst moments of hundreds of processes may take more.
        self._most = max(self._at_most, 2 * self._kept)

    def _all_records(self, pid: int) -> Iterator[SentSpan]:
        going_on = {_key(record): record for record in self._going_on.get(pid, ())}
        for record in self._records(pid):
            # It may have ended since it was noted.
            going_on.pop(_key(record), None)
            yield record
        yield from going_on.values()

    def _records(self, pid: int) -> Iterator[SentSpan]:
        values = iter(self._values.get(pid, ()))
        return map(SentSpan._make, zip(*[values] * len(_FIELDS), strict=True))


def _in_flight(raw: RawProcess, now_ns: int) -> list[SentSpan]:
    records: list[SentSpan] = []
    for tid, thread in raw.threads.items():
        since_ns = waiting_since_ns(thread)
        # A wait that does not count is none that would be sent when it has ended.
        if not 0 < since_ns < now_ns:
            continue
        totals = thread_totals(tid, thread, None, now_ns)
        # The wait in flight is in the time of its kind already, and in no number.
        finished_ns = zip(totals.lost.values(), thread["wait_ns"], strict=True)
        kind = [tally.ns > ns for tally, ns in finished_ns].index(True)
        records.append(_record(thread["cond"], since_ns, now_ns, tid, kind))
    for cond, lock in raw.locks.items():
        hold = lock.holding
        if hold is not None and hold.tid is not None:
            ended_ns = hold.since_ns + hold.part_ns
            records.append(_record(cond, hold.since_ns, ended_ns, hold.tid, SPAN_IS_HOLD))
    return records


def _spans(
    records: Iterable[SentSpan], gils: Mapping[int, Gil], stack_of: Callable[[int], Stack]
) -> tuple[Span, ...]:
    stack_of = cache(stack_of)
    spans = [_span(record, gils, stack_of) for record in records]
    return tuple(sorted(spans, key=attrgetter("ended_ns")))


def _span(record: SentSpan, gils: Mapping[int, Gil], stack_of: Callable[[int], Stack]) -> Span:
    gil = gils.get(record.cond)
    return Span(
        tid=record.tid,
        interpreter_id=ENDED_INTERPRETER if gil is None else gil.interpreter_id,
        began_ns=record.began_ns,
        ended_ns=record.ended_ns,
        kind=_KINDS[record.kind],
        stack=stack_of(record.waiter),
        holder=stack_of(record.holder),
    )


def _no_values() -> "array[int]":
    return array("Q")


def _record(cond: int, began_ns: int, ended_ns: int, tid: int, kind: int) -> SentSpan:
    return SentSpan(cond, began_ns, max(began_ns, ended_ns), 0, 0, tid, kind)


def _key(record: SentSpan) -> _Key:
    return record.tid, record.began_ns, record.kind == SPAN_IS_HOLD
