"""What reports say of calls that should not release the GIL, and of calls that should."""

from dataclasses import replace

from gilscope.model.gil import BriefRelease, HeldUp, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.reports.gil import json, markdown
from gilscope.reports.gil.html import report as html_report
from gilscope.reports.gil.releases import brief_words, keeping_words
from gilscope.reports.gil.text import report as text_report
from support.recordings.gil import CRUNCHING, MS, SERVING, session_of, with_edges

_BRIEF = "handle (app.py:13): 40 calls of 15 us on average, then 0.200s of waiting, 5 ms each"
_KEEPING = "crunch (app.py:4): ≈ 0.100s that others waited for C code (libz deflate)"


def _recording() -> Recording:
    recording = with_edges()
    deflate = HoldState(State.NATIVE, "libz deflate")
    held_up = (HeldUp(CRUNCHING, Kind.CONVOY, deflate, 100 * MS),)
    seen = recording.observation
    return replace(
        recording,
        observation=replace(seen, totals=replace(seen.totals, held_up=held_up)),
        brief_releases=(BriefRelease(SERVING, 600_000, Tally(200 * MS, 40)),),
    )


def test_words() -> None:
    """
    Where, how often, how short, and what it has cost.
    """
    assert [_BRIEF] == list(brief_words(_recording()))
    assert [_KEEPING] == list(keeping_words(_recording()))
    assert [] == list(brief_words(with_edges()))


def test_all_forms_have_them() -> None:
    """
    Text, Markdown and HTML say the same, and JSON has the figures.
    """
    recording = _recording()
    text = text_report.render(recording)
    page = str(html_report.render(recording))
    (brief,) = json.report(recording)["brief_releases"]

    assert (
        "Released for microseconds, and waited for longer to get it back\n"
        f"  {_BRIEF}.\n"
        "  What helps: fewer and larger calls; in code of your own, keep the GIL for what is so "
        "short.\n\nCalls that keep the GIL while others wait\n"
        f"  {_KEEPING}.\n"
    ) in text
    assert f"- {_BRIEF}.\n- {_KEEPING}.\n" in markdown.render(session_of(recording))
    assert _BRIEF.replace(" us ", " µs ") in page
    assert f"<li>{_KEEPING}.</li>" in page
    assert (40, 0.0006, 0.2) == (brief["calls"], brief["away_s"], brief["wait_s"])
    assert json.report(with_edges())["brief_releases"] is None
