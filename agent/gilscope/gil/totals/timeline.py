"""Waits and holds one by one: keeps what the probes send, and makes the timeline of it."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter

from gilscope.gil.abi import SPAN_IS_HOLD, Loss
from gilscope.gil.totals.process_totals import thread_totals
from gilscope.gil.totals.raw import RawProcess
from gilscope.model.gil import ENDED_INTERPRETER, Gil, Record
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.model.timeline import Span, Timeline

__all__ = ["MOST_SPANS", "Timelines"]

MOST_SPANS = 500_000
"""That are kept, of all processes together; each takes 56 bytes, and a kilobyte for as long as a
report is made of it."""

_FIELDS = ("cond", "began_ns", "ended_ns", "waiter", "holder", "tid", "kind")
"""What is kept of a record of the probes' ring ``spans``."""

_KINDS: dict[int, Kind | None] = {**{kind.number: kind for kind in Kind}, SPAN_IS_HOLD: None}

_Key = tuple[int, int, bool]


class Timelines:
    """What has been sent of all processes, as numbers: objects would take three times as much.

    When there is no more room the first spans stay, and further ones are counted.
    """

    def __init__(self, most: int = MOST_SPANS) -> None:
        """Keep *most* spans."""
        self._most = most
        self._kept = 0
        self._values: dict[int, array[int]] = defaultdict(_no_values)
        self._no_room: Counter[int] = Counter()
        self._going_on: dict[int, list[Record]] = {}
        self._unsent: dict[int, int] = {}

    def add(self, record: Record) -> None:
        """Take over one record of the ring: a wait or a hold that has ended."""
        pid = record["tgid"]
        if self._kept >= self._most:
            self._no_room[pid] += 1
            return
        self._kept += 1
        self._values[pid].extend([record[name] for name in _FIELDS])

    def note(self, pid: int, raw: RawProcess, now_ns: int) -> None:
        """Keep what is in flight in process *pid* at *now_ns*, until something newer is noted."""
        self._going_on[pid] = _in_flight(raw, now_ns)
        self._unsent[pid] = raw.lost.get(Loss.SPAN, 0)

    def timeline(
        self, pid: int, gils: Mapping[int, Gil], stack_of: Callable[[int], Stack]
    ) -> Timeline:
        """Return the spans of process *pid*, also those in flight, and how many more there were.

        *gils* are by address of ``cond``; *stack_of* turns the number of a stack into the stack.
        """
        stack_of = cache(stack_of)
        going_on = {_key(record): record for record in self._going_on.get(pid, ())}
        spans = []
        for record in self._records(pid):
            # It may have ended since it was noted.
            going_on.pop(_key(record), None)
            spans.append(_span(record, gils, stack_of))
        spans += [_span(record, gils, stack_of) for record in going_on.values()]
        spans.sort(key=attrgetter("ended_ns"))
        return Timeline(tuple(spans), self._no_room[pid] + self._unsent.get(pid, 0))

    def forget(self, pid: int) -> None:
        """Give up what is kept of process *pid*."""
        self._kept -= len(self._values.pop(pid, ())) // len(_FIELDS)
        del self._no_room[pid]
        self._going_on.pop(pid, None)
        self._unsent.pop(pid, None)

    def _records(self, pid: int) -> Iterator[Record]:
        values = self._values.get(pid, _no_values())
        for at in range(0, len(values), len(_FIELDS)):
            yield dict(zip(_FIELDS, values[at : at + len(_FIELDS)], strict=True))


def _in_flight(raw: RawProcess, now_ns: int) -> list[Record]:
    records: list[Record] = []
    for tid, thread in raw.threads.items():
        totals = thread_totals(tid, thread, None, now_ns)
        if not totals.waiting_ns:
            continue
        # The wait in flight is in the time of its kind already, and in no number.
        finished_ns = zip(totals.lost.values(), thread["wait_ns"], strict=True)
        kind = [tally.ns > ns for tally, ns in finished_ns].index(True)
        records.append(_record(thread["cond"], now_ns - totals.waiting_ns, now_ns, tid, kind))
    for cond, lock in raw.locks.items():
        hold = lock.holding
        if hold is not None and hold.tid is not None:
            ended_ns = hold.since_ns + hold.part_ns
            records.append(_record(cond, hold.since_ns, ended_ns, hold.tid, SPAN_IS_HOLD))
    return records


def _span(record: Record, gils: Mapping[int, Gil], stack_of: Callable[[int], Stack]) -> Span:
    gil = gils.get(record["cond"])
    return Span(
        tid=record["tid"],
        interpreter_id=ENDED_INTERPRETER if gil is None else gil.interpreter_id,
        began_ns=record["began_ns"],
        ended_ns=record["ended_ns"],
        kind=_KINDS[record["kind"]],
        stack=stack_of(record["waiter"]),
        holder=stack_of(record["holder"]),
    )


def _no_values() -> "array[int]":
    return array("Q")


def _record(cond: int, began_ns: int, ended_ns: int, tid: int, kind: int) -> Record:
    return {
        "cond": cond,
        "began_ns": began_ns,
        "ended_ns": max(began_ns, ended_ns),
        "waiter": 0,
        "holder": 0,
        "tid": tid,
        "kind": kind,
    }


def _key(record: Record) -> _Key:
    return record["tid"], record["began_ns"], record["kind"] == SPAN_IS_HOLD
