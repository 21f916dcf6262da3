"""The part of the landing page that is about STM logs."""

from gilscope.web.page import page
from gilscope.web.page.stm_log import stm_section
from support.stm_log.following import followed_log
from support.stm_log.writer import MS, LogWriter, marker


def _aborts(count: int, line: int = 3, file: str = "app.py") -> bytes:
    writer = LogWriter()
    for number in range(count):
        begin_ns = number * 100 * MS
        writer.add(begin_ns, 1, "START").add(begin_ns + MS, 1, "COMMIT")
        writer.add(begin_ns + 10 * MS, 1, "START")
        writer.add(begin_ns + 60 * MS, 1, "WRITE_READ", marker(line, file=file))
        writer.add(begin_ns + 60 * MS, 1, "ABORT")
    return writer.content


def test_log_has_a_row_with_its_figures() -> None:
    """
    How large it is, how far behind, what has ended how, and where most was lost.
    """
    content = _aborts(30)

    html = "\n".join(stm_section([followed_log(content, lag_bytes=12)], {}))

    cells = [part.partition("</t")[0] for part in html.split(" data-name=")[1:]]
    assert [
        "app.log",
        "1",
        "0.0 MB",
        "12 bytes",
        "30",
        "30 (50 %)",
        "",
        "1.500s",
        "0.000s",
        (
            "1.500s lost, 0.000s paused (30x STM_CONTENTION_WRITE_READ)<br>"
            "File &#34;app.py&#34;, line 3, in f"
        ),
    ] == [cell.partition(">")[2] for cell in cells]


def test_costliest_places_are_told() -> None:
    """
    Three of them, the worst first.
    """
    content = b"".join(
        _aborts(count, line=count)[0 if count == 9 else len(LogWriter().content) :]
        for count in (9, 7, 5, 3)
    )

    html = "\n".join(stm_section([followed_log(content)], {}))

    found = [html.find(f"line {line}, in f") for line in (9, 7, 5)]
    assert -1 not in found
    assert sorted(found) == found
    assert "line 3, in f" not in html


def test_costliest_log_comes_first() -> None:
    """
    By the time that was lost.
    """
    logs = [followed_log(_aborts(count), name=name) for count, name in ((3, "a"), (9, "b"))]

    html = "\n".join(stm_section(logs, {}))

    assert html.index(">b<") < html.index(">a<")


def test_names_of_the_program_do_nothing_to_the_page() -> None:
    """
    Names of files, positions and problems are text.
    """
    log = followed_log(_aborts(1, file="<b>"), name="<i>.log", problem="<u> is not read")

    html = "\n".join(stm_section([log], {}))

    assert all(tag not in html for tag in ("<b>", "<i>", "<u>"))
    assert all(text in html for text in ("&lt;b&gt;", "&lt;i&gt;.log", "&lt;u&gt; is not read"))


def test_section_is_there_where_logs_are_followed() -> None:
    """
    Also before there is one.
    """
    assert "STM logs" not in page.render(page.Figures())
    assert "<h2>STM logs</h2>\n<p>None yet: " in page.render(
        page.Figures(transactions=page.Transactions(logs=[]))
    )
    assert '<span class="quiet">ended</span>' in page.render(
        page.Figures(transactions=page.Transactions(logs=[followed_log()]))
    )
