"""A live process with transactions as HTML."""

from dataclasses import replace

from gilscope.model.session import Session
from gilscope.model.transactions import Library, Method
from gilscope.reports.renderers import RENDERERS
from gilscope.reports.transactions.html import render
from support.recordings.gil import with_edges
from support.recordings.transactions import stm_observation, stm_recording
from support.reports.html_tree import parse


def test_answer_comes_first_and_tables_follow() -> None:
    """
    What aborts have cost, what was waited for longest, and then by kind, reason and thread.
    """
    page = str(render(stm_recording()))
    order = [
        page.index(words)
        for words in (
            'class="lead">0.010\N{NO-BREAK SPACE}s lost in aborts: 10 tries were aborted, 25 % of',
            "Most pauses: 0.020\N{NO-BREAK SPACE}s in STM_WAIT_FREE_SEGMENT (4x).",
            "Paused, by kind",
            "Made inevitable, by reason",
            "By thread",
            "Collections of garbage",
            "Committed transactions ran",
        )
    ]

    assert sorted(order) == order
    assert 'STM_WAIT_FREE_SEGMENT</th><td class="n" data-v="20000000">' in page
    assert 'worker</th><td class="n" data-v="12">12</td>' in page
    parse(page)


def test_what_is_not_seen_is_not_zero() -> None:
    """
    Without a log there is no cost and no column for it, and C7 has no aborts either.
    """
    entries = str(render(stm_recording(Library.RPYTHON, Method.ENTRIES)))
    begins = str(render(stm_recording(Library.RPYTHON, Method.BEGINS)))

    assert "10 tries were aborted, 25 % of all; what that has cost is not seen." in entries
    assert "lost in aborts" not in entries
    assert "Paused" not in entries
    assert "PYPYSTM=/dev/null shows more." in entries
    assert "Aborts of this program are not seen." in begins
    assert "aborts</th>" not in begins


def test_names_of_the_program_are_text() -> None:
    """
    Of threads, reasons and the program itself nothing becomes HTML.
    """
    seen = stm_observation()
    thread = replace(seen.totals.threads[0], name="<b>t")
    totals = replace(seen.totals, threads=(thread,), inevitable={"<i>r": 1})
    process = replace(seen.process, name="<u>app", path="/<s>")
    recording = replace(stm_recording(), observation=replace(seen, process=process, totals=totals))
    page = str(render(recording))

    assert not [name for name in ("<b>", "<i>", "<u>", "<s>") if name in page]


def test_process_with_a_gil_comes_first() -> None:
    """
    Both are on one page, and each id is there once.
    """
    session = Session(
        2_000_000_000, "contention", (with_edges(),), (stm_recording(), stm_recording())
    )
    page = str(RENDERERS["html"](session))

    assert page.index('id="summary"') < page.index('id="stm-summary"')
    assert page.index('id="stm-summary"') < page.index('id="stm-summary-2"')
