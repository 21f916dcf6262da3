"""Waits for locks, and stops of the world, as Chrome trace events.

Each thread has a track with what it has waited for besides the GIL, and the process one with the
stops of its world: until all threads had stopped, and from then on.
"""

from collections.abc import Iterator
from typing import Final

from gilscope.model.locks import LockRecording, LockSpan, LockTimeline, StopSpan
from gilscope.reports.trace_events import StackTexts, dumped, metadata, microseconds
from gilscope.text.printable import printable

__all__ = ["LOCKS_TID", "STOPS_TID", "began_ns", "events", "timeline_of"]

LOCKS_TID: Final = 30_000_000
"""The track with a thread's waits for locks has the thread's number and this: no thread's number is
that large (PID_MAX_LIMIT of Linux is 4194304)."""
STOPS_TID: Final = 40_000_000
"""The track with the stops of the world."""


def timeline_of(recording: LockRecording) -> LockTimeline:
    """Return the timeline, an empty one where nothing was read; raises ValueError without one."""
    if recording.timeline is None and (
        recording.observation.totals is None or recording.observation.invalid
    ):
        return LockTimeline((), (), 0)
    if recording.timeline is None:
        raise ValueError("the recording of locks has no timeline")
    return recording.timeline


def began_ns(recording: LockRecording, timeline: LockTimeline) -> int:
    """Return when the first of what is shown began, CLOCK_MONOTONIC."""
    waits, stops = (
        (wait.began_ns for wait in timeline.waits),
        (stop.began_ns for stop in timeline.stops),
    )
    return min([recording.observation.since_ns, *waits, *stops])


def events(recording: LockRecording, timeline: LockTimeline, origin_ns: int) -> Iterator[str]:
    """Yield the events of one process, in time since *origin_ns*."""
    pid = recording.observation.process.pid
    yield dumped(
        metadata(pid, "process_name", {"name": printable(recording.observation.process.name)})
    )
    yield from _tracks(recording, timeline)
    yield from _remarks(recording, timeline.dropped)
    stacks = StackTexts()
    ended_ns: dict[int, int] = {}
    for span in timeline.waits:
        # A wait that another one has interrupted, which no track may show, continues there.
        from_ns = max(span.began_ns, ended_ns.get(span.tid, 0))
        ended_ns[span.tid] = span.ended_ns
        yield _wait(pid, span, from_ns, origin_ns, stacks)
    stood_ns = 0
    for stop in timeline.stops:
        from_ns = max(stop.began_ns, stood_ns)
        stood_ns = max(stood_ns, stop.ended_ns)
        if from_ns < stop.ended_ns:
            yield _stop(pid, stop, from_ns, origin_ns, stacks)


def _tracks(recording: LockRecording, timeline: LockTimeline) -> Iterator[str]:
    observation = recording.observation
    pid, totals = observation.process.pid, observation.totals
    names = {thread.tid: thread.name for thread in (() if totals is None else totals.threads)}
    for tid in sorted({span.tid for span in timeline.waits}):
        name = {"name": f"{printable(names.get(tid) or 'thread')}: locks"}
        yield dumped(metadata(pid, "thread_name", name, tid=LOCKS_TID + tid))
    if timeline.stops:
        yield dumped(metadata(pid, "thread_name", {"name": "world stops"}, tid=STOPS_TID))


def _remarks(recording: LockRecording, dropped: int) -> Iterator[str]:
    """Yield events that show in the picture itself what is missing there."""
    seen = recording.observation
    texts = []
    if seen.invalid:
        texts.append(f"locks are not seen any more, because {seen.invalid}")
    if dropped:
        texts.append(f"{dropped} more waits for locks were dropped and are not shown")
    if seen.totals is not None and not seen.is_whole:
        texts.append("waits for locks were seen in windows, and are shown from these alone")
    for text in texts:
        pid = seen.process.pid
        what = {"ph": "i", "s": "p", "pid": pid, "tid": pid, "ts": 0, "name": printable(text)}
        yield dumped(what)


def _wait(pid: int, span: LockSpan, from_ns: int, origin_ns: int, stacks: StackTexts) -> str:
    name = span.kind.value if span.type is None else f"{span.kind.value} {span.type}"
    return (
        f'{{"ph":"X","pid":{pid},"tid":{LOCKS_TID + span.tid},'
        f'"ts":{microseconds(from_ns - origin_ns)},'
        f'"dur":{microseconds(span.ended_ns - from_ns)},'
        f'"name":{dumped(printable(name))},'
        f'"cat":"{"lock" if span.kind.is_contention else "idle"}",'
        f'"args":{{"waiter":{stacks.text(span.stack)},'
        f'"held_by":{stacks.text(span.held)},'
        f'"released_by":{stacks.text(span.released)}}}}}'
    )


def _stop(pid: int, stop: StopSpan, from_ns: int, origin_ns: int, stacks: StackTexts) -> str:
    return (
        f'{{"ph":"X","pid":{pid},"tid":{STOPS_TID},'
        f'"ts":{microseconds(from_ns - origin_ns)},'
        f'"dur":{microseconds(stop.ended_ns - from_ns)},'
        f'"name":"{"world stands" if stop.stands else "stopping"}: {stop.cause.value}",'
        f'"cat":"world_stop","args":{{"thread":{stop.tid},"asked":{stacks.text(stop.stack)}}}}}'
    )
