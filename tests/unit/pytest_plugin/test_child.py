"""What the child says of the process of the tests."""

from dataclasses import replace

from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.naming.places import SiteNames
from gilscope.pytest_plugin import own_tracer
from gilscope.pytest_plugin.child import sums
from support.recordings.gil import CRUNCHING, MS, SERVING, stack, with_edges


def test_sums_are_those_of_all_threads() -> None:
    """
    Places are the application's, with the line.
    """
    said = sums(with_edges().observation, SiteNames())

    assert (1000 * MS, 1940 * MS, 235) == (said["at_ns"], said["wait_ns"], said["waits"])
    assert {
        "crunch (app.py:4)": 1470 * MS,
        "Pattern.scan <café> (match.py:27)": 350 * MS,
        "(no Python code)": 70 * MS,
        "(unknown)": 50 * MS,
    } == said["places"]


def test_waits_of_asking_are_left_out() -> None:
    """
    A thread that asks reads and writes, and waits for the GIL when it comes back.
    """
    seen = with_edges().observation
    asking = stack(("OwnTracer.sums", own_tracer.__file__, 45, 50), *_frames_of_test())
    edge = Edge(Kind.BLOCKING_CALL, asking, CRUNCHING, Tally(30 * MS, 4))
    edges = (replace(seen.totals.edges[-1], waiter=asking, lost=edge.lost), *seen.totals.edges[:-1])
    said = sums(replace(seen, totals=replace(seen.totals, edges=edges)), SiteNames())

    assert (1910 * MS, 231) == (said["wait_ns"], said["waits"])
    assert 1440 * MS == said["places"]["crunch (app.py:4)"]


def _frames_of_test() -> list[tuple[str, str, int, int]]:
    return [(each.function, each.file, each.first_line, each.line or 0) for each in SERVING.frames]


def test_figures_that_cannot_be_trusted_are_an_error() -> None:
    """
    No number is said.
    """
    said = sums(replace(with_edges().observation, invalid="why"), SiteNames())

    assert {"error": "its figures cannot be trusted: why", "remedy": ""} == said
