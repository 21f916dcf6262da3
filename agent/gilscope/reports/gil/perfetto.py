"""The timeline of a recording as Chrome trace events, which Perfetto and other viewers open.

Each thread has a track with its waits, and where holds are seen a second one with those: a thread
that is preempted already waits while it releases the GIL, so the two overlap by a moment, which no
track may show. Who held each lock is a track of its own, from which arrows lead to the waits behind
it. Locks and stops of the world have tracks of their own as well: see `reports.locks.perfetto`.
Microseconds with three decimals, since the beginning of the recording.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any

import gilscope
from gilscope.model.gil import Recording, ThreadTotals
from gilscope.model.locks import LockRecording
from gilscope.model.timeline import Span, Timeline
from gilscope.reports.gil.holds_by_waits import Hold, exact_holds, holds_by_waits
from gilscope.reports.locks import perfetto as of_locks
from gilscope.reports.trace_events import StackTexts, dumped, metadata, microseconds, separated
from gilscope.text.printable import printable

__all__ = ["HOLDER_TID", "HOLDS_TID", "LEAST_ARROW_NS", "render"]

HOLDS_TID = 10_000_000
"""The track with a thread's holds has the thread's number and this: no thread's number is that
large (PID_MAX_LIMIT of Linux is 4194304)."""

HOLDER_TID = 20_000_000
"""The track with who held a lock has the number of its interpreter and this."""

LEAST_ARROW_NS = 1_000_000
"""An arrow to each wait would make most files unreadable; those to the long ones say the most."""

_THREAD = '"thread"'


def render(*recordings: Recording, locks: Sequence[LockRecording] = ()) -> str:
    """Return the file, of *locks* too: one event a line; raises ValueError without timelines."""
    seen = [(recording, _timeline(recording)) for recording in recordings]
    of_them = [(recording, of_locks.timeline_of(recording)) for recording in locks]
    began_ns = [_began_ns(*each) for each in seen]
    began_ns += [of_locks.began_ns(*each) for each in of_them]
    origin_ns = min(began_ns, default=0)
    lost: Counter[str] = Counter()
    for recording in recordings:
        lost.update(recording.observation.totals.lost_events)
    for each in locks:
        lost.update({} if each.observation.totals is None else each.observation.totals.lost_events)
    pythons = {each.observation.process.python for each in recordings}
    pythons |= {each.observation.process.python for each in locks}
    dropped = [timeline.dropped for _, timeline in seen] + [each.dropped for _, each in of_them]
    other = {
        "exporter": f"gilscope {gilscope.__version__}",
        "mode": " ".join(sorted({recording.mode for recording in recordings})),
        "python": " ".join(sorted(pythons)),
        "clock": "CLOCK_MONOTONIC",
        "origin_ns": origin_ns,
        "origin_unix_ns": _unix_ns(recordings, locks, origin_ns),
        "dropped_spans": sum(dropped),
        "lost_events": dict(lost),
    }
    head = f'{{"displayTimeUnit":"ns","otherData":{dumped(other)},"traceEvents":['
    # They are matched by their numbers in all of the file.
    arrows = count(1)
    told = [_events(*each, origin_ns, arrows) for each in seen]
    told += [of_locks.events(*each, origin_ns) for each in of_them]
    events = chain.from_iterable(told)
    # Joined at once: of what may be hundreds of megabytes, there should not be a third copy.
    return "".join(chain([head], separated(events), ["\n]}\n"]))


def _unix_ns(
    recordings: Sequence[Recording], locks: Sequence[LockRecording], origin_ns: int
) -> int | None:
    """Return when the clock of the file is 0 by that of the host, None where that is not known."""
    for recording in recordings:
        if recording.ended_ns:
            return recording.ended_ns - (recording.observation.totals.at_ns - origin_ns)
    for each in locks:
        if each.ended_ns and each.observation.totals is not None:
            return each.ended_ns - (each.observation.totals.at_ns - origin_ns)
    return None


def _timeline(recording: Recording) -> Timeline:
    if recording.timeline is None:
        raise ValueError("the recording has no timeline")
    return recording.timeline


def _began_ns(recording: Recording, timeline: Timeline) -> int:
    return min([recording.observation.since_ns, *(span.began_ns for span in timeline.spans)])


def _events(
    recording: Recording, timeline: Timeline, origin_ns: int, arrows: Iterator[int]
) -> Iterator[str]:
    remarks = (*_names(recording, timeline), *_remarks(recording, timeline.dropped))
    yield from map(dumped, remarks)
    spans = _Spans(recording, origin_ns, arrows)
    yield from spans.events(timeline.spans)
    yield from spans.holder_events(timeline.spans, _holds(recording, timeline))


def _holds(recording: Recording, timeline: Timeline) -> list[Hold]:
    if _sees_holds(timeline):
        return exact_holds(timeline.spans)
    return holds_by_waits(timeline.spans, recording.observation.totals.at_ns)


def _sees_holds(timeline: Timeline) -> bool:
    return any(span.kind is None for span in timeline.spans)


def _names(recording: Recording, timeline: Timeline) -> Iterator[dict[str, Any]]:
    seen = recording.observation
    pid = seen.process.pid
    yield metadata(pid, "process_name", {"name": printable(seen.process.name)})
    roles = {thread.tid: _role(thread) for thread in seen.totals.threads}
    tracks = {(span.tid, span.kind is None) for span in timeline.spans}
    for tid, is_hold in sorted(tracks):
        role = roles.get(tid, "thread")
        name = {"name": f"{role}: holds" if is_hold else role}
        yield metadata(pid, "thread_name", name, tid=_track(tid, is_hold=is_hold))
    how = "" if _sees_holds(timeline) else " ≈ by waits"
    locks = {span.interpreter_id for span in timeline.spans}
    for lock in sorted(locks):
        which = f" of interpreter {lock}" if len(locks) > 1 else ""
        name = {"name": f"GIL holder{which}{how}"}
        yield metadata(pid, "thread_name", name, tid=_holder_track(lock))


def _role(thread: ThreadTotals) -> str:
    return printable(thread.role or "starting")


def _remarks(recording: Recording, dropped: int) -> Iterator[dict[str, Any]]:
    """Yield an event that shows in the picture itself what is missing there."""
    seen = recording.observation
    text = ""
    if seen.invalid:
        text = f"nothing is reported, because {seen.invalid}"
    elif dropped:
        text = f"{dropped} more waits and holds were dropped and are not shown"
    if text:
        pid = seen.process.pid
        yield {"ph": "i", "s": "p", "pid": pid, "tid": pid, "ts": 0, "name": printable(text)}


class _Spans:
    """Makes the events, of which there may be a million: what repeats is put into words once."""

    def __init__(self, recording: Recording, origin_ns: int, arrows: Iterator[int]) -> None:
        self._pid = recording.observation.process.pid
        self._tells_interpreters = len(recording.observation.totals.gils) > 1
        self._origin_ns = origin_ns
        self._stacks = StackTexts()
        threads = recording.observation.totals.threads
        self._roles = {thread.tid: dumped(_role(thread)) for thread in threads}
        self._arrows = arrows

    def events(self, spans: Iterable[Span]) -> Iterator[str]:
        for span in spans:
            is_hold = span.kind is None
            kind = "hold" if span.kind is None else span.kind.value
            yield (
                f'{{"ph":"X","pid":{self._pid},"tid":{_track(span.tid, is_hold=is_hold)},'
                f'"ts":{microseconds(span.began_ns - self._origin_ns)},'
                f'"dur":{microseconds(span.ended_ns - span.began_ns)},'
                f'"name":"{kind}","cat":"{"hold" if is_hold else "wait"}",'
                f'"args":{{{",".join(self._arguments(span))}}}}}'
            )

    def holder_events(self, spans: Iterable[Span], holds: Iterable[Hold]) -> Iterator[str]:
        """Yield who held which lock when, and arrows from there to the longer waits behind it."""
        by_lock: dict[int, list[Hold]] = defaultdict(list)
        for hold in sorted(holds, key=lambda hold: hold.began_ns):
            by_lock[hold.interpreter_id].append(hold)
            yield self._holder(hold)
        for span in spans:
            if span.kind is None or span.ended_ns - span.began_ns < LEAST_ARROW_NS:
                continue
            holds_of_lock = by_lock[span.interpreter_id]
            at = bisect_right(holds_of_lock, span.began_ns, key=lambda hold: hold.began_ns) - 1
            if at >= 0 and span.began_ns < holds_of_lock[at].ended_ns:
                yield from self._arrow(span)

    def _holder(self, hold: Hold) -> str:
        stack = f',"holder":{self._stacks.text(hold.stack)}' if hold.stack.frames else ""
        return (
            f'{{"ph":"X","pid":{self._pid},"tid":{_holder_track(hold.interpreter_id)},'
            f'"ts":{microseconds(hold.began_ns - self._origin_ns)},'
            f'"dur":{microseconds(hold.ended_ns - hold.began_ns)},'
            f'"name":{self._roles.get(hold.tid, _THREAD)},"cat":"holder",'
            f'"args":{{"thread":{hold.tid},"assumed":{"true" if hold.is_assumed else "false"}'
            f"{stack}}}}}"
        )

    def _arrow(self, span: Span) -> Iterator[str]:
        which = f'"name":"delays","cat":"delays","id":{next(self._arrows)},"pid":{self._pid}'
        at = f'"ts":{microseconds(span.began_ns - self._origin_ns)}'
        yield f'{{"ph":"s",{which},"tid":{_holder_track(span.interpreter_id)},{at}}}'
        yield f'{{"ph":"f","bp":"e",{which},"tid":{span.tid},{at}}}'

    def _arguments(self, span: Span) -> Iterator[str]:
        if self._tells_interpreters:
            yield f'"interpreter":{span.interpreter_id}'
        if span.kind is not None:
            yield f'"waiter":{self._stacks.text(span.stack)}'
            yield f'"holder":{self._stacks.text(span.holder)}'


def _track(tid: int, *, is_hold: bool) -> int:
    return HOLDS_TID + tid if is_hold else tid


def _holder_track(interpreter_id: int) -> int:
    # One that has ended has the number -1.
    return HOLDER_TID + 1 + interpreter_id
