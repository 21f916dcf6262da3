"""FIELDS of gilscope-stm(8): every word and JSON key of the reports is explained, and no other."""

import json

from gilscope.reports.stm_log import interval_json
from gilscope.reports.stm_log import json as stm_log_json
from gilscope.reports.stm_log import text as stm_log_text
from gilscope.stm_log.interval import interval
from gilscope.stm_log.reader import TABLES
from support.docs.pages import DOCS, json_keys, section, words_in_first_cells
from support.stm_log.following import followed_log
from support.stm_log.program import played_log
from support.stm_log.reading import file_of, report_of
from support.stm_log.writer import LogWriter

_BY_NAME = {"files", "counts", "with_marker", "waits", "logs", "errors"}
"""JSON objects whose keys are names of files or events."""
_PAGE = (DOCS / "man" / "gilscope-stm.8.md").read_text()


def _fields(part: str) -> str:
    return section(section(_PAGE, "## FIELDS"), f"### {part}")


def _two_logs() -> bytes:
    first, second = (played_log("E16", 300, seed).content for seed in (1, 2))
    return first + b"\0" * 40 + second[16:]


def test_json_keys_are_explained() -> None:
    """
    The table has every key of the report, and none that it has not.
    """
    report = report_of(file_of(_two_logs()))
    merged = stm_log_json.report(report)
    merged["merged"] = [{"name": "", "names": []}]

    assert words_in_first_cells(_fields("JSON")) == json_keys(merged, _BY_NAME)


def test_json_keys_of_follow_are_explained() -> None:
    """
    The table has every key of a line, and none that it has not.
    """
    seen = interval((), [followed_log(_two_logs())], 1)
    line = json.loads(interval_json.render(seen, 0.0, most=1))
    line["report"] = None

    assert words_in_first_cells(_fields("JSON of follow")) == json_keys(line, _BY_NAME)


def test_words_of_the_text_are_explained() -> None:
    """
    The table has every line of the head of a report.
    """
    writer = LogWriter().add(0, 1, "START").add(1, 1, "ABORT")
    lines = [
        *stm_log_text.render(report_of(file_of(_two_logs()))).splitlines(),
        *stm_log_text.render(report_of(file_of(writer.content))).splitlines(),
    ]
    words = words_in_first_cells(_fields("Text"))
    starts = {line.strip().partition(":")[0] + ":" for line in lines if ":   " in line}

    assert {"Total real time:", "Time in transactions:", "Outside of them:"} <= starts
    assert set() == {start for start in starts if start.startswith(("T", "O"))} - words
    assert set() == {
        word
        for word in ("Aborts without a conflict in the log:", "Waits, also of transactions")
        if not any(line.startswith(word) for line in lines)
    }


def test_tables_of_events_are_explained() -> None:
    """
    The page on counting has each of them.
    """
    page = section((DOCS / "stm.md").read_text(), "## Which events a number stands for")

    assert set(TABLES) == words_in_first_cells(page)
