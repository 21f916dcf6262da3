"""The locks of a live process as HTML."""

from dataclasses import replace

from gilscope.model.session import Session
from gilscope.reports.locks.html import render
from gilscope.reports.renderers import RENDERERS
from support.recordings.gil import with_edges
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_recording
from support.reports.html_tree import parse

_NBSP = "\N{NO-BREAK SPACE}"


def test_answer_comes_first_and_tables_follow() -> None:
    """
    What was lost, then the places with both of their ends, the matrix, and the threads.
    """
    page = str(render(lock_recording()))
    order = [
        page.index(words)
        for words in (
            f'class="lead">0.050{_NBSP}s lost waiting for locks, 3 % of the time of first',
            "What was waited for, and where",
            "Which lock costs which place",
            "Stops of the world",
            "By thread",
        )
    ]

    assert sorted(order) == order
    assert '<th scope="row">object (list)</th><td class="n" data-v="30000000">' in page
    assert "<summary><code>append (app.py:12)</code></summary>" in page
    assert "<li><code>work (app.py:22)</code></li>" in page
    both = "<td><code>compare (app.py:41)</code></td><td>80 % <code>sort (app.py:33)</code></td>"
    assert both in page
    assert '>second</th><td class="n" data-v="12">12</td>' in page
    assert '<th scope="row">garbage collection</th><td class="n" data-v="10000000">' in page
    assert "The world was stopped 6 times a second, 1 % of the time" in page
    parse(page)


def test_what_was_seen_in_windows_says_so() -> None:
    """
    With the share of the time.
    """
    page = str(render(lock_recording(observed_ns=500_000_000)))

    assert "Seen for 0.500s in windows at random, 50 % of the time" in page
    assert "6 % of the time of first" in page


def test_what_could_not_be_traced_has_its_reason() -> None:
    """
    And no figure.
    """
    page = str(render(lock_recording(invalid="it is too old", has_totals=False)))

    assert "They were not traced: it is too old." in page
    assert "lock-summary" not in page


def test_names_of_the_program_are_text() -> None:
    """
    Of threads, types, code and the program itself nothing becomes HTML.
    """
    seen = lock_recording().observation
    assert seen.totals is not None
    thread = seen.totals.threads[0]
    frame = replace(thread.waits[0].stack.frames[0], function="<s>f", file="/<i>.py")
    stack = replace(thread.waits[0].stack, frames=(frame, frame))
    wait = replace(thread.waits[0], type="<b>t", stack=stack, released=stack, held=stack)
    thread = replace(thread, name="<u>n", waits=(wait,))
    process = replace(seen.process, name="<em>app")
    totals = replace(seen.totals, threads=(thread,))
    observation = replace(seen, process=process, totals=totals, invalid="<a>")
    page = str(render(replace(lock_recording(), observation=observation)))

    assert not [name for name in ("<b>", "<i>", "<u>", "<s>", "<em>", "<a>") if name in page]


def test_all_that_was_recorded_is_on_one_page() -> None:
    """
    The GIL first, then transactions, then locks; each id is there once.
    """
    both = (lock_recording(), lock_recording())
    session = Session(2_000_000_000, "contention", (with_edges(),), (stm_recording(),), locks=both)
    page = str(RENDERERS["html"](session))
    alone = str(RENDERERS["html"](Session(2_000_000_000, "contention", (), locks=both[:1])))

    ids = ('id="summary"', 'id="stm-summary"', 'id="lock-summary"', 'id="lock-summary-2"')
    assert sorted(map(page.index, ids)) == list(map(page.index, ids))
    assert "<title>Locks: app.py, pid 4711" in alone
