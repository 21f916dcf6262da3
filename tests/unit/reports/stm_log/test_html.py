"""The page on STM logs: it stands alone, has the figures, and trusts no log."""

import base64
import hashlib
import re

from gilscope.model.stm_log import LogGroup, StmReport
from gilscope.reports.stm_log import html as stm_log_html
from gilscope.stm_log.merge import merge
from support.reports.html_tree import Element, parse
from support.stm_log.program import played_log
from support.stm_log.reading import file_of, report_of
from support.stm_log.writer import MS, LogWriter, marker

_LARGEST_BYTES = 150_000


def _content() -> bytes:
    writer = LogWriter().add(0, 1, "START").add(100 * MS, 1, "INEVITABLE", marker(2))
    writer.add(100 * MS, 1, "WAIT_OTHER_INEVITABLE").add(400 * MS, 1, "WAIT_DONE")
    writer.add(500 * MS, 1, "COMMIT").add(500 * MS, 2, "START")
    writer.add(1000 * MS, 2, "WRITE_READ", marker(7, "spam")).add(1000 * MS, 2, "ABORT")
    return writer.content


def _page(content: bytes) -> Element:
    return parse(stm_log_html.render(report_of(file_of(content))))


def _column_counts(page: Element, section: str) -> int:
    figure = page.one("section", class_=section).one("figure")
    titles = [title.text for title in figure.one("svg").all("title")]
    return sum(int(title.rpartition(" ")[2]) for title in titles)


def test_page_stands_alone() -> None:
    """
    It loads nothing, runs nothing, and its policy knows its one style by its digest.
    """
    html = stm_log_html.render(report_of(file_of(played_log("E16", 3000).content)))
    page = parse(html)
    style = page.one("style").text
    (policy,) = [meta.attributes["content"] for meta in page.all("meta", http_equiv="")] or [""]
    (raw_style,) = re.findall(r"(?s)<style>(.*?)</style>", html)
    digest = base64.b64encode(hashlib.sha256(raw_style.encode()).digest()).decode()

    assert style
    assert f"style-src 'sha256-{digest}'" in html
    assert "default-src 'none'" in html
    assert [] == page.all("script")
    assert [] == re.findall(r"(?:src|href)=|url\(|@import| style=", html)
    assert _LARGEST_BYTES > len(html)
    assert policy is not None


def test_figures_are_those_of_the_log() -> None:
    """
    The sums stand at the top.
    """
    parts = _page(_content()).one("dl", class_="figures").all("div")

    assert {
        "real time": "1.000 s",
        "threads in transactions": "1.00",
        "of the transactions aborted": "50.0 %",
        "lost in aborts": "0.500 s",
        "paused because of conflicts": "0.300 s",
    } == {part.one("dt").text: part.one("strong").text for part in parts}


def test_parts_of_the_time_are_a_bar_and_a_table() -> None:
    """
    Both have the same parts, and the bar is full.
    """
    section = _page(_content()).one("section", class_="times")
    widths = [float(rect.attributes["width"].rstrip("%")) for rect in section.all("rect")]

    assert [20.0, 50.0, 30.0] == widths
    assert [
        ["committed", "0.200 s", "20 %"],
        ["aborted", "0.500 s", "50 %"],
        ["paused", "0.300 s", "30 %"],
        ["waits: other inevitable", "0.300 s", "1x"],
    ] == section.one("table").rows


def test_every_conflict_and_every_end_is_in_a_column() -> None:
    """
    Plots over time leave nothing out.
    """
    file = file_of(played_log("E16", 3000).content)
    (log,) = file.logs
    page = parse(stm_log_html.render(report_of(file)))

    assert sum(conflict.count for conflict in log.conflicts) == _column_counts(page, "over-time")
    assert log.totals.commits + log.totals.aborts == _column_counts(page, "ends")


def test_places_are_listed_with_their_source() -> None:
    """
    Kind, position and line; lost, paused and times.
    """
    file = file_of(_content())
    plain = report_of(file)
    report = StmReport(plain.files, plain.groups, {("app.py", 7): "spam(<eggs>)"}, None)
    table = parse(stm_log_html.render(report)).one("table", class_="conflicts")

    assert [
        ["kind and places", "lost in aborts", "paused", "times", "over time"],
        [
            'contention write readFile "app.py", line 7, in spamspam(<eggs>)',
            "0.500 s",
            "0.000 s",
            "1",
            "",
        ],
        ['become inevitableFile "app.py", line 2, in f', "0.000 s", "0.300 s", "1", ""],
    ] == table.rows


def test_run_times_are_charts() -> None:
    """
    One of the committed, one of the aborted transactions.
    """
    section = _page(_content()).one("section", class_="durations")

    assert [
        "Committed 1, 200 ms on average, p50 ≈ 198 ms, p99 ≈ 198 ms",
        "Aborted 1, 500 ms on average, p50 ≈ 515 ms, p99 ≈ 515 ms",
    ] == [caption.text for caption in section.all("caption")]


def test_nothing_in_a_log_is_markup() -> None:
    """
    Names of files and functions are text.
    """
    evil = "</style><script>alert(1)</script>"
    writer = LogWriter()
    for number in range(9):
        writer.add(number, 1, "START").add(number, 1, "WRITE_READ", marker(1, evil, evil))
        writer.add(number, 1, "ABORT")
    html = stm_log_html.render(report_of(file_of(writer.content, name=f"{evil}.log")))

    assert "<script" not in html
    assert 1 == html.count("</style>")
    assert "&lt;script&gt;alert(1)" in html


def test_several_logs_are_one_page() -> None:
    """
    Each has its heading; merged ones have a table of their parts, and what is wrong is told.
    """
    files = tuple(file_of(_content() + b"\0", name=name) for name in ("a", "a.fork1", "b"))
    logs = tuple(file.logs[0] for file in files)
    groups = (LogGroup(merge(logs[:2]), logs[:2]), LogGroup(logs[2], logs[2:]))
    page = parse(stm_log_html.render(StmReport(files, groups, {}, None)))

    assert ["a and 1 fork", "b"] == [heading.text for heading in page.all("h1")]
    assert ["a", "8", "1.000 s", "1", "1"] == page.one("table", class_="members").rows[1]
    assert 3 == len(page.one("section", id="warnings").all("li"))


def test_empty_logs_have_a_page() -> None:
    """
    Without records, without time, without transactions.
    """
    writer = LogWriter()
    for content in (writer.content, writer.add(0, 1, "COMMIT").content):
        page = _page(content)
        assert "No transaction was in conflict" in page.one("section", class_="places").text
