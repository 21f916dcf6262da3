"""What the live view says of a process with transactions."""

from dataclasses import replace

from gilscope.model.transactions import Method
from gilscope.top.layout import Span
from gilscope.top.transactions.rates import stm_rates
from gilscope.top.transactions.words import cells, explained
from support.recordings.transactions import stm_observation
from support.top.driven import View, run
from support.top.views import BUSY

_WIDTH = 49


def _text(spans: tuple[Span, ...]) -> str:
    return "".join(span.text for span in spans).rstrip()


def test_row_has_figures_in_the_columns_that_fit() -> None:
    """
    Lost by observed time, commits and aborts, and what tracing costs; of threads not the cost.
    """
    (rates,) = stm_rates([], [stm_observation()])

    assert "    15.0  15 commits/s, 25 % aborted          2.0" == _text(cells(rates, rates, _WIDTH))
    (worker,) = rates.threads
    assert "     5.0  16 commits/s, 24 % aborted" == _text(cells(rates, worker, _WIDTH))


def test_what_is_not_seen_is_empty() -> None:
    """
    No cost of aborts without a log, no aborts at all of C7; nothing where no window was open.
    """
    entries, begins = (
        stm_rates([], [stm_observation(method=method)])[0]
        for method in (Method.ENTRIES, Method.BEGINS)
    )
    (unseen,) = stm_rates([], [replace(stm_observation(), observed_ns=0)])
    earlier = replace(stm_rates([], [stm_observation()])[0], is_earlier=True)

    assert (
        "          15 commits/s, 25 % aborted"
        == _text(cells(entries, entries, _WIDTH)[:2]).rstrip()
    )
    assert "          15 commits/s" == _text(cells(begins, begins, _WIDTH)[:2])
    assert (
        "          not seen in this interval" == _text(cells(unseen, unseen, _WIDTH)[:2]).rstrip()
    )
    assert "   ≈15.0  ≈15 commits/s, 25 % aborted" == _text(cells(earlier, earlier, _WIDTH)[:2])


def test_process_is_explained() -> None:
    """
    Lately and in total: aborts, waits by kind; then reasons, coverage, and what is not seen.
    """
    (logs,), (entries,) = (
        stm_rates([], [stm_observation(method=method)])
        for method in (Method.EVENTS, Method.ENTRIES)
    )

    assert [
        "30 commits, seen by every event that it logs, 100 % of the time",
        "      ms/s    total s",
        "       5.0        0.0  lost in aborts, 10 tries, 25 % of all",
        "      10.0        0.0  paused, 4 waits",
        "paused in STM_WAIT_FREE_SEGMENT 0.0 s (4x)",
        "inevitable by 4x time; 2x other; 1x open",
    ] == list(explained(logs))
    assert "PYPYSTM=/dev/null shows more." == list(explained(entries))[-1]
    assert not any("lost" in line for line in explained(entries))


def test_view_shows_transactions_below_gils() -> None:
    """
    The process and its threads in the table, and below what these lose when it is selected.
    """

    async def act(view: View) -> None:
        await view.press("end", "up")
        assert "Transactions of app.py (4712)" in view.lines
        assert "15 commits/s, 25 % aborted" in view.text
        assert "2x worker" in view.text
        assert "lost in aborts, 10 tries, 25 % of all" in view.text
        await view.press("space")
        assert "2x worker" not in view.text
        await view.press("slash", *"nothing")
        assert "commits/s" not in view.text

    run(act, BUSY, transactions=[stm_observation(pid=4712)])


def test_process_that_is_not_seen_any_more_says_why() -> None:
    """
    In its row and below, in place of figures.
    """

    async def act(view: View) -> None:
        assert "1 not reported" in view.lines[1]
        assert 2 == view.text.count("its probe has gone")

    run(act, transactions=[stm_observation(invalid="its probe has gone")])
