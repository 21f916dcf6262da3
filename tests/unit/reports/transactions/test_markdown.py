"""A live process with transactions as Markdown."""

import pytest

from gilscope.model.session import Session
from gilscope.model.transactions import Library, Method
from gilscope.reports.renderers import RENDERERS
from gilscope.reports.transactions.markdown import render
from support.recordings.transactions import stm_recording


def test_the_answer_comes_first() -> None:
    """
    What aborts have cost, then the process, what threads waited for, and the reasons.
    """
    lines = render(stm_recording()).splitlines()

    assert "### Transactions: 0.010s lost in 10 aborted tries, 25 % of all" == lines[0]
    assert "app.py, pid 4711, PyPy-STM or another RPython program: 30 commits in 2.000s" in lines[2]
    assert "| STM_WAIT_FREE_SEGMENT | 0.020s | 4 |" in lines
    assert "| time | 4 |" in lines


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (Method.ENTRIES, "### Transactions: 10 aborted tries, 25 % of all"),
        (Method.BEGINS, "### Transactions: aborts are not seen"),
    ],
)
def test_what_is_not_seen_is_not_told(method: Method, answer: str) -> None:
    """
    Without a log there is no cost, and in C7 no aborts either.
    """
    lines = render(stm_recording(Library.RPYTHON, method)).splitlines()

    assert answer == lines[0]
    assert not any("STM_WAIT" in line for line in lines)


def test_a_session_of_transactions_alone_says_nothing_of_a_gil() -> None:
    """
    What was not measured has no heading.
    """
    session = Session(2_000_000_000, "contention", (), (stm_recording(),))
    report = RENDERERS["markdown"](session)

    assert isinstance(report, str)
    assert report.startswith("### Transactions")
    assert "GIL" not in report
