"""What the live view shows, without a terminal."""

from dataclasses import replace

import pytest
from textual.app import App
from textual.events import Resize
from textual.filter import NoColor
from textual.geometry import Size

from gilscope.model.gil import Tally
from gilscope.top.app import TopApp
from gilscope.top.header import Settings
from support.recordings.gil import MS, PROCESS
from support.top.driven import View, run
from support.top.views import BUSY, IDLE, INVALID, REFUSED, Made


def test_first_screen() -> None:
    """
    At 80x24 there are the processes with their roles, the pairs of the worst, and the keys.
    """
    screens: list[list[str]] = []

    async def act(view: View) -> None:
        screens.append(view.lines)

    run(act, IDLE, BUSY, INVALID, refusals=[REFUSED])
    (lines,) = screens

    assert "gilscope top  by time lost  full mode, every 0.001 s" == lines[0]
    assert lines[1].startswith("2 traced, 1 not reported, 1 refused  2 events lost  agent: ")
    assert [
        "app.py                    4711",
        "  serve (app.py:8)",
        "  2x crunch (app.py:2)",
        "idle.py                1234567",
        "bad.py                      77",
        "old.py                      99",
    ] == [line[:30].rstrip() for line in lines[4:10]]
    assert "Who keeps whom waiting in app.py (4711), ≈ by the stacks of some of the waits" in lines
    assert lines[14].startswith("kept by ≈ 76 % crunch (app.py:4); ")
    assert lines[15].startswith("to change crunch (app.py:4) in another process: at most ")
    assert "GIL_CONVOY         handle (app.py:13)" in lines[17]
    assert "held by            crunch (app.py:4)" in lines[18]
    assert "enter open tab pairs s sort S reverse r roles / filter p pause ? help q quit" == (
        lines[23].strip()
    )


def test_names_cannot_command_the_terminal() -> None:
    """
    Escape sequences and markup in names are shown, not obeyed.
    """
    nasty = replace(BUSY, process=replace(PROCESS, name="\x1b]0;x\x07[red]a"))

    async def act(view: View) -> None:
        assert view.lines[4].startswith("]0;x[red]a")
        assert "\x1b" not in view.text

    run(act, nasty)


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (200, 60)])
def test_sizes(size: tuple[int, int]) -> None:
    """
    Whatever the terminal's size, the view is drawn within it.
    """

    async def act(view: View) -> None:
        await view.pilot.resize_terminal(*size)
        await view.settle()
        assert size[1] == len(view.lines)
        assert all(len(line) <= size[0] for line in view.lines)
        await view.press("tab", "enter", "escape", "question_mark", "escape")

    run(act, BUSY, IDLE)


def test_many_processes_scroll() -> None:
    """
    The cursor is always in sight, and the head stays where it is.
    """
    many = [replace(IDLE, process=replace(PROCESS, name=f"p{n:03}", pid=n)) for n in range(100)]

    async def act(view: View) -> None:
        await view.press("end")
        assert "p099 (99)" in view.text
        assert any(line.startswith("p099 ") for line in view.lines)
        assert view.lines[2].startswith("process")
        await view.press("pageup")
        assert not any(line.startswith("p099 ") for line in view.lines)

    run(act, *many)


def test_failed_look_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """
    What was seen last stays, and the view goes on.
    """

    async def act(view: View) -> None:
        view.source.failure = OSError("the map has gone")
        await view.look()
        assert "app.py" in view.text
        assert "3 problems, told at the end" in view.lines[1]
        view.source.failure = None
        await view.look(IDLE)
        assert "idle.py" in view.text

    run(act, BUSY, problems=3)

    assert "could not read the traced processes this time" in caplog.text


def test_lost_time_of_an_interval_is_shown() -> None:
    """
    The second look shows what has been lost since the first.
    """
    totals = BUSY.totals
    gained = replace(totals.edges[0], lost=totals.edges[0].lost + Tally(30 * MS, 2))
    later = replace(
        BUSY, totals=replace(totals, at_ns=2100 * MS, edges=(gained, *totals.edges[1:]))
    )

    async def act(view: View) -> None:
        await view.look(later)
        assert "    300.0       1.1  GIL_CONVOY         handle (app.py:13)" in view.lines

    run(act, BUSY)


def test_application_is_textuals() -> None:
    """
    The colours are the terminal's own, and there is no palette of commands of textual's.
    """
    app = TopApp(Made().source, Settings("full", 1.0))

    assert isinstance(app, App)
    assert ("ansi-dark", False) == (app.theme, app.ENABLE_COMMAND_PALETTE)


def test_first_line_is_cut_and_never_wrapped() -> None:
    """
    What does not fit is left out, with an ellipsis in its place.
    """

    async def act(view: View) -> None:
        await view.press("slash", *"0123456789" * 5)
        assert 80 == len(view.lines[0])
        assert view.lines[0].endswith("…")
        assert "only: 0123456789" in view.lines[0]

    run(act, BUSY)


def test_no_colour_is_used_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With NO_COLOR the view is drawn all the same, without colours.
    """
    monkeypatch.setenv("NO_COLOR", "1")

    async def act(view: View) -> None:
        filters = view.app.get_line_filters()
        assert "app.py" in view.text
        assert any(isinstance(each, NoColor) for each in filters)

    run(act, BUSY)


def test_two_sizes_at_once_come_to_rest() -> None:
    """
    A size that the terminal does not have any more is not taken, so that two do not alternate.
    """
    sizes: list[tuple[int, ...]] = []

    async def act(view: View) -> None:
        for size in (Size(500, 500), Size(1, 1), view.app.size):
            view.app.screen.post_message(Resize(size, size))
        await view.settle()
        sizes.append(tuple(view.app.screen.size))
        view.app.screen._screen_resized(Size(20, 5))  # noqa: SLF001 - what a late event does
        sizes.append(tuple(view.app.screen.size))

    run(act, IDLE)

    assert [(80, 24), (80, 24)] == sizes
