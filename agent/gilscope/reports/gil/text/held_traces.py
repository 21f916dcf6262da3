"""What the text report says of the requests that kept the GIL, by trace."""

from collections.abc import Iterator

from gilscope.model.gil import Recording
from gilscope.model.traces import TraceHold, TraceHolds
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, seconds, short_duration

__all__ = ["held_trace_lines"]

_MOST_SHOWN = 3
_INDENT = " " * 11


def held_trace_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the requests that were slow to release it, and those that held it for long."""
    traces = recording.observation.totals.traces
    if traces is None:
        return
    if traces.slow_drops.times:
        yield paint.bold("Requests that were slow to release the GIL when asked")
        yield from _holds(traces.slow_drops, "slow drop", paint)
    if traces.long_holds.times:
        yield paint.bold("Requests that held the GIL for 10 ms or more at a time")
        yield from _holds(traces.long_holds, "hold", paint)


def _holds(holds: TraceHolds, what: str, paint: Paint) -> Iterator[str]:
    yield f"{counted(holds.times, what)}, {seconds(holds.ns)} altogether; the worst:"
    for each in holds.worst[:_MOST_SHOWN]:
        yield from _hold(each, what, paint)
    if len(holds.worst) > _MOST_SHOWN:
        yield paint.dim("--format json has more of them.")


def _hold(each: TraceHold, what: str, paint: Paint) -> Iterator[str]:
    yield f"{short_duration(each.ns):>9}  {paint.bold('trace ' + each.trace_id)}"
    if each.times == 1:
        yield f"{_INDENT}one {what}, in span {each.span_id}"
    else:
        longest = short_duration(each.longest_ns)
        yield f"{_INDENT}{counted(each.times, what)}, the longest {longest} in span"
        yield f"{_INDENT}{each.span_id}"
    if each.route is not None:
        yield f"{_INDENT}of {printable(each.route)}"
