"""The keys of the live view, without a terminal."""

from dataclasses import replace

import pytest

from support.recordings.gil import MS, PROCESS
from support.top.driven import View, run
from support.top.views import BUSY, IDLE, INVALID, REFUSED


def test_enter_opens_the_stacks_of_a_pair() -> None:
    """
    From the process to its pairs, from a pair to its stacks, and all the way back by escape.
    """

    async def act(view: View) -> None:
        await view.press("enter", "down", "enter")
        assert "GIL_CONVOY" in view.lines[0]
        assert "waiting" in view.lines
        assert "    line 13 of 4711" in view.lines
        assert "  Pattern.scan <café> (match.py:27)" in view.lines
        await view.press("escape", "escape")
        assert view.lines[0].startswith("gilscope top")
        assert "processes" == view.app.screen.focused.id  # type: ignore[union-attr]

    run(act, BUSY)


def test_cursor_chooses_whose_pairs_are_shown() -> None:
    """
    The lower pane is about the process under the cursor, and says why there is nothing to show.
    """
    titles = {
        "home": "Who keeps whom waiting in app.py (4711), ≈ by the stacks of some of the waits",
        "end": "old.py (99) is not traced",
        "up": "bad.py (77) is not reported",
        "k": "Who keeps whom waiting in idle.py (1234567)",
    }

    async def act(view: View) -> None:
        for key, title in titles.items():
            await view.press(key)
            assert title in view.lines
        await view.press("j")
        assert " what the probes saw is not a GIL's (invalid_mutex)" in view.lines
        await view.press("end")
        assert "gilscope knows CPython 3.6 to 3.15." in view.text

    run(act, BUSY, IDLE, INVALID, refusals=[REFUSED])


def test_cursor_stays_on_what_it_rests_on() -> None:
    """
    When another process becomes the worst, the one that was chosen stays chosen.
    """
    other = replace(BUSY, process=replace(PROCESS, name="other.py", pid=5))

    async def act(view: View) -> None:
        await view.press("end")
        assert "idle.py (1234567)" in view.text
        await view.look(IDLE)
        await view.look(other, IDLE, BUSY)
        assert "idle.py (1234567)" in view.text

    run(act, BUSY, IDLE)


def test_worst_process_is_selected_until_the_cursor_moves() -> None:
    """
    Who only looks sees the pairs of the process on top.
    """
    worse = replace(
        BUSY,
        process=replace(PROCESS, name="worse.py", pid=5),
        totals=replace(BUSY.totals, at_ns=1000 * MS),
    )

    async def act(view: View) -> None:
        await view.look(worse)
        assert "Who keeps whom waiting in worse.py (5)" in view.text

    run(act, BUSY)


def test_sorting() -> None:
    """
    S goes on to the next column, S turns it round, and the first line says so.
    """

    async def act(view: View) -> None:
        await view.press("s")
        assert "by convoy share" in view.lines[0]
        await view.press("S")
        assert "by convoy share, reversed" in view.lines[0]
        assert view.lines[4].startswith("app.py")  # that of idle.py is not known

    run(act, IDLE, BUSY)


def test_roles_come_and_go() -> None:
    """
    R shows or hides them everywhere, the blank for one process.
    """

    async def act(view: View) -> None:
        assert "serve (app.py:8)" in view.text
        await view.press("space")
        assert "serve (app.py:8)" not in view.text
        await view.press("space")
        assert "serve (app.py:8)" in view.text
        await view.press("space", "r")
        assert "serve (app.py:8)" not in view.text
        await view.press("space")
        assert "serve (app.py:8)" in view.text

    run(act, BUSY)


def test_filter() -> None:
    """
    What is typed after / leaves the processes with these words; escape brings the others back.
    """

    async def act(view: View) -> None:
        await view.press("slash", *"IDLE", "enter")
        assert "only: IDLE" in view.lines[0]
        assert "app.py" not in view.text
        await view.press("escape")
        assert "app.py" in view.text
        assert "only" not in view.lines[0]

    run(act, BUSY, IDLE)


def test_pause_stops_what_is_shown() -> None:
    """
    Looking goes on meanwhile, and its result is there as soon as the pause is over.
    """

    async def act(view: View) -> None:
        await view.press("p")
        assert "PAUSED" in view.lines[0]
        await view.look(IDLE)
        assert "app.py  " in view.text
        await view.press("p")
        assert "app.py  " not in view.text
        assert "idle.py" in view.text

    run(act, BUSY)


def test_help_explains_every_key_of_the_footer() -> None:
    """
    ? says what the keys and the columns mean, and every word of it can be reached.
    """

    async def act(view: View) -> None:
        await view.press("question_mark")
        seen = set(view.lines)
        for key in ("down", "pagedown", "pagedown"):
            await view.press(key)
            seen |= set(view.lines)
        said = "\n".join(sorted(seen))
        for words in ("Keys", "s, S  ", "r, space", "tab", "cost  ", "held by", "GIL_CONVOY"):
            assert words in said
        await view.press("escape")
        assert view.lines[0].startswith("gilscope top")

    run(act, BUSY)


def test_empty_host() -> None:
    """
    Without any process the view says so, and no key breaks it.
    """

    async def act(view: View) -> None:
        assert "No Python that was chosen is running." in view.text
        keys = "down up end home pagedown enter tab escape space r s S p p slash escape"
        await view.press(*keys.split())
        assert "0 traced" in view.lines[1]

    run(act)


def test_pairs_that_vanish_give_the_keys_back() -> None:
    """
    When the process ends while its pairs have the keys, the table gets them.
    """

    async def act(view: View) -> None:
        await view.press("tab")
        assert "pairs" == view.app.screen.focused.id  # type: ignore[union-attr]
        await view.look(IDLE)
        assert "processes" == view.app.screen.focused.id  # type: ignore[union-attr]

    run(act, BUSY)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_keys_that_end_it(key: str) -> None:
    """
    Both end it with 0, also while a text is read or words are typed.
    """
    for before in ((), ("question_mark",), ("slash",)):
        if key == "q" and before:
            continue  # there it goes back, or is a letter

        async def act(view: View, before: tuple[str, ...] = before) -> None:
            await view.press(*before)
            view.app.simulate_key(key)
            await view.pilot.pause(0)

        assert 0 == run(act, BUSY).return_code
