"""The requests in the HTML report."""

from gilscope.reports.gil.html.report import render
from support.recordings.gil import with_edges, with_traces
from support.reports.html_tree import parse


def test_each_request_has_a_row() -> None:
    """
    The worst first, with the span and the holder of its longest wait.
    """
    section = parse(str(render(with_traces()))).one("section", id="traces")
    first, second = section.one("tbody").all("tr")

    assert "7 traces waited for 0.070s, 10 ms each" in section.text
    assert [
        "4bf92f3577b34da6a3ce929d0e0e4736span 00f067aa0ba902b7",
        "crunch (app.py:4)",
        "31 ms",
        "3",
        "20 ms",
    ] == [cell.text for cell in first.all("td")]
    assert "b7ad6b7169203331" in second.text


def test_each_route_has_a_row() -> None:
    """
    With whom its requests mostly waited for.
    """
    section = parse(str(render(with_traces()))).one("section", id="routes")
    rows = section.one("tbody").all("tr")

    assert [
        ["POST /checkout", "crunch (app.py:4)", "0.062s", "2", "31 ms", "20 ms"],
        ["no route", "handle (app.py:13)", "0.008s", "5", "1.6 ms", "4 ms"],
    ] == [[cell.text for cell in row.all("td")] for row in rows]


def test_each_request_that_kept_the_gil_has_a_row() -> None:
    """
    Slow drops first, then holds.
    """
    section = parse(str(render(with_traces()))).one("section", id="held-traces")
    slow, long = section.one("tbody").all("tr")

    assert [
        "0af7651916cd43dd8448eb211c80319cspan 0102010201020102",
        "/report",
        "slow drops",
        "400 ms",
        "2",
        "300 ms",
    ] == [cell.text for cell in slow.all("td")]
    assert ["no route", "holds", "90 ms", "1", "300 ms"] == [
        cell.text for cell in long.all("td")[1:]
    ]


def test_a_program_that_publishes_nothing_has_no_table() -> None:
    """
    Nor a heading.
    """
    page = render(with_edges())

    assert "Requests that waited" not in page
    assert "Routes that waited" not in page
    assert "Requests that kept the GIL" not in page
