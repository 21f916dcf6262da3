"""What the text report says of the requests that have waited, by trace."""

from collections.abc import Iterator

from gilscope.model.gil import Recording
from gilscope.model.traces import TraceWait
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, seconds, short_duration

__all__ = ["trace_lines"]

_MOST_SHOWN = 5
_INDENT = " " * 11


def trace_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the requests that have waited most, if the process tells which its threads serve."""
    traces = recording.observation.totals.traces
    if traces is None or not traces.number:
        return
    yield paint.bold("Requests that waited (by the traces that the program publishes)")
    mean = short_duration(traces.wait_ns // traces.number)
    yield f"{counted(traces.number, 'trace')} waited for {seconds(traces.wait_ns)}, {mean} each."
    names = SiteNames()
    for each in traces.worst[:_MOST_SHOWN]:
        yield from _trace(each, recording, names, paint)
    if traces.number > _MOST_SHOWN:
        yield paint.dim("--format json has more of them.")


def _trace(each: TraceWait, recording: Recording, names: SiteNames, paint: Paint) -> Iterator[str]:
    yield f"{short_duration(each.wait_ns):>9}  {paint.bold('trace ' + each.trace_id)}"
    frame = application_frame(each.holder, recording.application)
    behind = printable(names.owner(frame, each.holder))
    if each.waits == 1:
        yield f"{_INDENT}in span {each.span_id}, behind {behind}"
    else:
        longest = short_duration(each.longest_ns)
        yield f"{_INDENT}in {counted(each.waits, 'wait')}, the longest {longest} in span"
        yield f"{_INDENT}{each.span_id}, behind {behind}"
