"""What the live view says of locks."""

from dataclasses import replace

from gilscope.naming.places import SiteNames
from gilscope.top.layout import Span
from gilscope.top.locks.rates import lock_rates
from gilscope.top.locks.words import cells, explained, in_short
from support.recordings.locks import lock_recording
from support.top.driven import View, run
from support.top.views import BUSY

_WIDTH = 60
_SEEN = lock_recording().observation
(_RATES,) = lock_rates([], [_SEEN])


def _text(spans: tuple[Span, ...]) -> str:
    return "".join(span.text for span in spans).rstrip()


def test_row_has_figures_in_the_columns_that_fit() -> None:
    """
    Lost by observed time, waits, stops of the world and cost; of threads neither of the last two.
    """
    first = _RATES.threads[0]
    row = _text(cells(_RATES, _RATES, _WIDTH))

    assert row.startswith("    50.0  4 waits/s for locks, world stopped 1 %")
    assert row.endswith(" 0.10")
    assert _WIDTH == len(row)
    assert "    30.0  2 waits/s for locks" == _text(cells(_RATES, first, _WIDTH))


def test_where_no_window_was_open() -> None:
    """
    There are no figures, or they are of an earlier interval.
    """
    (unseen,) = lock_rates([], [replace(_SEEN, observed_ns=0)])
    earlier = replace(_RATES, is_earlier=True)

    assert (
        "          not seen in this interval" == _text(cells(unseen, unseen, _WIDTH)[:2]).rstrip()
    )
    assert _text(cells(earlier, earlier, _WIDTH)).startswith("   ≈50.0  ≈4 waits/s")


def test_process_is_explained() -> None:
    """
    Lately and in total, all of it and by place, with the other ends; idle time; stops; limits.
    """
    lines = list(explained(_RATES, SiteNames()))

    assert [
        "locks, seen 100 % of the time",
        "      ms/s    total s",
        "      50.0        0.1  waiting for locks, 4 waits",
        "      30.0        0.0    object (list) in append (app.py:12)",
        "                         held by compare (app.py:41)",
        "                         80 % released by sort (app.py:33)",
        "      20.0        0.0    lock in append (app.py:12)",
        "                  1.0  idle: waits for something to do",
        "The world was stopped 6 times a second, 1 % of the time; the longest stop took 5 ms.",
    ] == lines[:9]
    assert (
        "Who takes a lock while it is free is not seen, nor what is tried without a lock."
        == (lines[-1])
    )


def test_beside_a_gil_there_is_one_line() -> None:
    """
    With the shares of the costliest places; nothing where nothing was lost.
    """
    (quiet,) = lock_rates([_SEEN], [_SEEN])
    bad = replace(_RATES, seen=replace(_SEEN, invalid="its probe has gone"))

    assert (
        "50.0 ms/s: 60 % object (list) in append (app.py:12); 40 % lock in append (app.py:12)"
        == in_short(_RATES, SiteNames())
    )
    assert "" == in_short(quiet, SiteNames())
    assert "not reported: its probe has gone" == in_short(bad, SiteNames())


def test_view_shows_a_process_without_a_gil() -> None:
    """
    The process and its threads in the table, and below what they wait for when it is selected.
    """
    alone = replace(_SEEN, process=replace(_SEEN.process, pid=99, name="free.py"))

    async def act(view: View) -> None:
        await view.press("end", "up", "up")
        assert "What threads wait for in free.py (99), which has no GIL" in view.lines
        assert "4 waits/s for locks" in view.text
        assert "object (list) in append (app.py:12)" in view.text
        assert "released by sort (app.py:33)" in view.text
        assert "2 traced" in view.lines[1]
        assert any(line.startswith("  second ") for line in view.lines)
        await view.press("space")
        assert not any(line.startswith("  second ") for line in view.lines)
        await view.press("slash", *"nothing")
        assert "waits/s" not in view.text

    run(act, BUSY, locks=[alone])


def test_view_shows_locks_beside_a_gil() -> None:
    """
    In a line below whose code held that; the process is not there twice.
    """
    beside = replace(_SEEN, process=replace(_SEEN.process, pid=BUSY.process.pid))

    async def act(view: View) -> None:
        assert "1 traced" in view.lines[1]
        (line,) = (each for each in view.lines if each.startswith("locks "))
        assert line.startswith("locks 50.0 ms/s: 60 % object (list) in append (app/app.py:12); 4")
        assert "waits/s" not in view.text

    run(act, BUSY, locks=[beside])
