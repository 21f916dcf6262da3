"""What the text report says of requests."""

from dataclasses import replace

from gilscope.model.gil import Recording
from gilscope.model.traces import Traces
from gilscope.reports.gil.text import screen
from gilscope.reports.gil.text.held_traces import held_trace_lines
from gilscope.reports.gil.text.report import render
from gilscope.reports.gil.text.routes import route_lines, route_words
from gilscope.reports.gil.text.traces import trace_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import session_of, with_edges, with_traces


def _lines(recording: Recording) -> list[str]:
    return list(trace_lines(recording, Paint(on=False)))


def test_requests_that_waited_most_come_first() -> None:
    """
    With their sums, and behind whose code the longest wait of each began.
    """
    assert [
        "Requests that waited (by the traces that the program publishes)",
        "7 traces waited for 0.070s, 10 ms each.",
        "    31 ms  trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "           in 3 waits, the longest 20 ms in span",
        "           00f067aa0ba902b7, behind crunch (app.py:4)",
        "     9 ms  trace 0af7651916cd43dd8448eb211c80319c",
        "           in span b7ad6b7169203331, behind crunch (app.py:4)",
        "--format json has more of them.",
    ] == _lines(with_traces())
    assert "Requests that waited" in render(with_traces())


def test_screen_has_a_line() -> None:
    """
    How long they have waited, and which of them the longest; and the route that waited most.
    """
    said = "7 requests waited, 10 ms each; the worst 31 ms: trace 4bf92f3577b34da6a3ce929d0e0e4736."
    route = "POST /checkout waited 31 ms a request, mostly behind crunch (app.py:4)."
    lines = screen.render(session_of(with_traces())).splitlines()

    assert [said, route] == lines[lines.index(said) :][:2]


def test_routes_that_waited_most_come_first() -> None:
    """
    With whom they waited for; requests without a route are told as such.
    """
    assert [
        "Routes that waited (as the program publishes them)",
        "   0.062s  POST /checkout: 2 requests, 31 ms each,",
        "           mostly behind crunch (app.py:4)",
        "   0.008s  no route: 5 requests, 1.6 ms each,",
        "           mostly behind handle (app.py:13)",
    ] == list(route_lines(with_traces(), Paint(on=False)))
    assert "Routes that waited" in render(with_traces())


def test_without_routes_nothing_is_said_of_them() -> None:
    """
    Nor of requests that have none.
    """
    recording = with_traces()
    traces = recording.observation.totals.traces
    assert traces is not None
    totals = replace(recording.observation.totals, traces=replace(traces, routes=()))
    none = replace(recording, observation=replace(recording.observation, totals=totals))

    assert [] == list(route_lines(none, Paint(on=False)))
    assert route_words(none) is None
    assert [] == list(route_lines(with_edges(), Paint(on=False)))


def test_requests_that_kept_the_gil() -> None:
    """
    Those that were slow to release it, and those that held it for long, with the longest's span.
    """
    assert [
        "Requests that were slow to release the GIL when asked",
        "2 slow drops, 0.400s altogether; the worst:",
        "   400 ms  trace 0af7651916cd43dd8448eb211c80319c",
        "           2 slow drops, the longest 300 ms in span",
        "           0102010201020102",
        "           of /report",
        "Requests that held the GIL for 10 ms or more at a time",
        "1 hold, 0.090s altogether; the worst:",
        "    90 ms  trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "           one hold, in span 0102010201020102",
    ] == list(held_trace_lines(with_traces(), Paint(on=False)))
    assert "slow to release the GIL when asked" in render(with_traces())
    assert [] == list(held_trace_lines(with_edges(), Paint(on=False)))


def test_where_nothing_is_published_or_nothing_waited() -> None:
    """
    There is nothing to say.
    """
    quiet = with_edges()
    totals = replace(quiet.observation.totals, traces=Traces(0, 0, 0))
    none = replace(quiet, observation=replace(quiet.observation, totals=totals))

    assert [] == _lines(quiet) == _lines(none)
