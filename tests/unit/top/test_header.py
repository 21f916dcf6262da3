"""The lines at the top, and the look that they tell of."""

from dataclasses import replace

from gilscope.top.columns import Order
from gilscope.top.header import Settings, totals_line, view_line
from gilscope.top.snapshot import NOTHING, take_snapshot
from support.top.views import AGENT, BUSY, IDLE, INVALID, REFUSED, Made, text


def test_view_line_says_what_is_shown() -> None:
    """
    Mode, interval and order always; the filter and the pause where there are any.
    """
    plain = Settings("contention", 1.0)
    other = Settings("auto", 0.5, Order(1, is_reversed=True), words="gu\x1b", is_paused=True)

    assert "gilscope top  by time lost  contention mode, every 1 s" == text(view_line(plain))
    assert (
        "gilscope top  by convoy share, reversed  PAUSED  only: gu  auto mode, every 0.5 s"
    ) == text(view_line(other))


def test_totals_line_counts_by_state() -> None:
    """
    Traced, ended, without figures and refused; then what was lost, and what the agent uses.
    """
    ended = replace(IDLE, ended=True)
    seen = take_snapshot(Made(BUSY, ended, INVALID, refusals=[REFUSED]).source, NOTHING)

    assert (
        "1 traced, 1 ended, 1 not reported, 1 refused  2 events lost  agent: 0.5 % CPU, 38.0 MB"
    ) == text(totals_line(seen))


def test_totals_line_of_a_quiet_host() -> None:
    """
    What there is none of is left out, but for lost events: none is good to know.
    """
    seen = take_snapshot(Made(IDLE).source, NOTHING)

    assert "1 traced  no events lost  agent: 0.5 % CPU, 38.0 MB" == text(totals_line(seen))
    assert "looking for processes" == text(totals_line(NOTHING))


def test_totals_line_tells_of_problems() -> None:
    """
    The log is not on the screen, so the line says that it has something to say.
    """
    seen = take_snapshot(Made(IDLE).source, NOTHING)

    assert "1 traced  1 problem, told at the end  no events lost" in text(totals_line(seen, 1))


def test_look_compares_the_agent_with_itself() -> None:
    """
    Its CPU time is that of the interval; where no time has passed there is no share.
    """
    first = take_snapshot(Made(BUSY).source, NOTHING)
    earlier = replace(first, agent=replace(AGENT, running_ns=9_000_000_000, cpu_ns=0))

    assert 0.005 == first.cpu_share
    assert 0.05 == take_snapshot(Made(BUSY).source, earlier).cpu_share
    assert take_snapshot(Made(BUSY).source, first).cpu_share is None
    assert 0 == take_snapshot(Made(BUSY).source, first).processes[0].lost_ns
