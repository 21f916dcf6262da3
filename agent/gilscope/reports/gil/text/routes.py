"""What the text report says of the routes whose requests have waited."""

from collections.abc import Iterator

from gilscope.model.gil import Recording
from gilscope.model.traces import RouteWait
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.naming.routes import route_name
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, seconds, short_duration

__all__ = ["route_lines", "route_words"]

_MOST_SHOWN = 5
_INDENT = " " * 11


def route_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the routes that have waited most, if the process tells them."""
    traces = recording.observation.totals.traces
    if traces is None or not traces.routes:
        return
    yield paint.bold("Routes that waited (as the program publishes them)")
    for each in traces.routes[:_MOST_SHOWN]:
        name, requests = route_name(each.route), counted(each.requests, "request")
        mean = short_duration(each.mean_ns)
        yield f"{seconds(each.wait_ns):>9}  {paint.bold(name)}: {requests}, {mean} each,"
        yield f"{_INDENT}mostly behind {_behind(each, recording)}"
    if len(traces.routes) > _MOST_SHOWN:
        yield paint.dim("--format json has more of them.")


def route_words(recording: Recording) -> str | None:
    """Return who of all routes has waited most and behind whom; None: no route is known."""
    traces = recording.observation.totals.traces
    known = () if traces is None else [each for each in traces.routes if each.route is not None]
    if not known:
        return None
    worst = known[0]
    name, mean = route_name(worst.route), short_duration(worst.mean_ns)
    return f"{name} waited {mean} a request, mostly behind {_behind(worst, recording)}."


def _behind(each: RouteWait, recording: Recording) -> str:
    frame = application_frame(each.holder, recording.application)
    return printable(SiteNames().owner(frame, each.holder))
