"""The requests that waited or kept the GIL, by what the program publishes of them: tables."""

from collections.abc import Iterator

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.model.traces import RouteWait, TraceHold, TraceWait
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.naming.routes import route_name
from gilscope.reports.html.markup import tag, text
from gilscope.text.units import counted, seconds, short_duration

__all__ = ["held_traces_section", "routes_section", "traces_section"]


def traces_section(recording: Recording, names: SiteNames) -> Iterator[Markup]:
    """Yield the table; nothing where the program publishes none, or none has waited."""
    traces = recording.observation.totals.traces
    if traces is None or not traces.worst:
        return
    yield Markup('<section id="traces"><h2>Requests that waited</h2>')
    mean = short_duration(traces.wait_ns // max(1, traces.number))
    yield Markup(
        "<p>By the traces that the program publishes: {} waited for {}, {} each. The span is that "
        "of the longest wait, and behind is whose code held the GIL when that began.</p>"
    ).format(counted(traces.number, "trace"), seconds(traces.wait_ns), mean)
    yield Markup('<table class="by-place"><thead><tr>')
    for heading in ("trace", "behind"):
        yield tag("th", heading, scope="col")
    for heading in ("waited", "waits", "the longest"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for each in traces.worst:
        yield tag("tr", *_cells(each, recording, names))
    yield Markup("</tbody></table></section>")


def routes_section(recording: Recording, names: SiteNames) -> Iterator[Markup]:
    """Yield the table of routes; nothing where the program publishes none."""
    traces = recording.observation.totals.traces
    if traces is None or not traces.routes:
        return
    yield Markup('<section id="routes"><h2>Routes that waited</h2>')
    yield Markup(
        "<p>As the program publishes them; a request is one trace. Behind is whose code held the "
        "GIL when most of their longest waits began, by time.</p>"
    )
    yield Markup('<table class="by-place"><thead><tr>')
    for heading in ("route", "mostly behind"):
        yield tag("th", heading, scope="col")
    for heading in ("waited", "requests", "each", "the longest"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for each in traces.routes:
        yield tag("tr", *_route_cells(each, recording, names))
    yield Markup("</tbody></table></section>")


def held_traces_section(recording: Recording) -> Iterator[Markup]:
    """Yield the table of who kept it; nothing where the program publishes none, or none did."""
    traces = recording.observation.totals.traces
    if traces is None or not (traces.slow_drops.times or traces.long_holds.times):
        return
    yield Markup('<section id="held-traces"><h2>Requests that kept the GIL</h2>')
    yield Markup(
        "<p>By the traces that the program publishes: drops that took 10 ms or more after the "
        "request, and, in full mode, holds that lasted as long. The span is that of the "
        "longest.</p>"
    )
    yield Markup('<table class="by-place"><thead><tr>')
    for heading in ("trace", "route", "by"):
        yield tag("th", heading, scope="col")
    for heading in ("altogether", "times", "the longest"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for kind, holds in (("slow drops", traces.slow_drops), ("holds", traces.long_holds)):
        for each in holds.worst:
            yield tag("tr", *_held_cells(each, kind))
    yield Markup("</tbody></table></section>")


def _held_cells(each: TraceHold, kind: str) -> Iterator[Markup]:
    span = tag("span", f"span {each.span_id}", class_="outer")
    yield tag("td", tag("code", each.trace_id), span)
    yield tag("td", text(route_name(each.route)))
    yield tag("td", kind)
    yield tag("td", short_duration(each.ns), class_="n")
    yield tag("td", str(each.times), class_="n")
    yield tag("td", short_duration(each.longest_ns), class_="n")


def _route_cells(each: RouteWait, recording: Recording, names: SiteNames) -> Iterator[Markup]:
    frame = application_frame(each.holder, recording.application)
    yield tag("td", text(route_name(each.route)))
    yield tag("td", tag("span", text(names.owner(frame, each.holder)), class_="site holder"))
    yield tag("td", seconds(each.wait_ns), class_="n")
    yield tag("td", str(each.requests), class_="n")
    yield tag("td", short_duration(each.mean_ns), class_="n")
    yield tag("td", short_duration(each.longest_ns), class_="n")


def _cells(each: TraceWait, recording: Recording, names: SiteNames) -> Iterator[Markup]:
    frame = application_frame(each.holder, recording.application)
    span = tag("span", f"span {each.span_id}", class_="outer")
    yield tag("td", tag("code", each.trace_id), span)
    yield tag("td", tag("span", text(names.owner(frame, each.holder)), class_="site holder"))
    yield tag("td", short_duration(each.wait_ns), class_="n")
    yield tag("td", str(each.waits), class_="n")
    yield tag("td", short_duration(each.longest_ns), class_="n")
