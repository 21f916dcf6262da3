"""The picture of the worst moment."""

from dataclasses import replace
from typing import Any

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.model.kinds import Kind
from gilscope.model.timeline import Moment, Span
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html.moment import moment_section
from support.recordings.gil import CRUNCHING, MS, SERVING, with_edges, with_moment
from support.recordings.html import EVIL
from support.reports.html_tree import Element, parse


def _section(recording: Recording) -> Element:
    return parse(Markup("").join(moment_section(recording, SiteNames()))).one("section")


def _marks(row: Element, look: str) -> list[tuple[str, str]]:
    return [
        (mark.attributes["x"], mark.attributes["width"])
        for mark in row.all("rect")
        if mark.attributes["class"] == look
    ]


def _changed(recording: Recording, **changes: Any) -> Recording:
    assert recording.worst is not None
    return replace(recording, worst=replace(recording.worst, **changes))


def test_nothing_is_drawn_where_nothing_was_asked_for() -> None:
    """
    As in a report of `serve`.
    """
    assert [] == list(moment_section(with_edges(), SiteNames()))


def test_words_say_when_and_how_much() -> None:
    """
    18, 2 and 10 ms of waiting are inside.
    """
    section = _section(with_moment())

    assert "The worst 40 ms" == section.one("h2").text
    assert (
        "When threads waited most: 0.030 s in all, by 2 threads, 1.000 s into the recording. "
        "Each row is a thread."
    ) == section.all("p")[0].text


def test_rows_are_threads_with_holds_and_waits() -> None:
    """
    In percent of the width: thread 2 holds up to 18 ms and from 20 ms on, thread 1 in between.

    A hold that nobody waited for meanwhile is told apart.
    """
    rows = _section(with_moment()).one("table").all("tr")
    crunching, serving, _ = rows

    assert ["crunch (app.py:2), 2", "serve (app.py:8)"] == [row.one("th").text for row in rows[:2]]
    assert [("0.000%", "45.000%"), ("75.000%", "25.000%")] == _marks(crunching, "hold")
    assert [("50.000%", "25.000%")] == _marks(crunching, "hold assumed")
    assert [("45.000%", "5.000%")] == _marks(crunching, "wait")
    assert [("45.000%", "5.000%")] == _marks(serving, "hold")
    assert [("0.000%", "45.000%"), ("75.000%", "25.000%")] == _marks(serving, "wait")


def test_a_mark_says_how_long_and_where() -> None:
    """
    In full, also where it reaches out of the picture.
    """
    crunching, serving, _ = _section(with_moment()).one("table").all("tr")

    assert "waited 30 ms (convoy) in handle (app.py:13)" == serving.all("title")[1].text
    assert "held the GIL for 18 ms in crunch (app.py:4)" in [
        title.text for title in crunching.all("title")
    ]
    assert ["38 ms, waited for 2 ms", "2 ms, waited for 28 ms"] == [
        row.one("svg")
        .attributes["aria-label"]
        .removeprefix("held the GIL for ")
        .replace("\u00a0", " ")
        for row in (crunching, serving)
    ]


def test_requests_to_drop_are_lines() -> None:
    """
    5 ms into each wait of 18 ms or more.
    """
    _, serving, _ = _section(with_moment()).one("table").all("tr")

    assert ["12.500%", "87.500%"] == [
        line.attributes["x1"] for line in serving.all("line") if line.attributes["class"] == "asked"
    ]


def test_notes_say_how_sure_it_is() -> None:
    """
    Inferred or seen, and what it was chosen among.
    """
    inferred = _section(with_moment()).all("p")[-1].text
    seen = _section(_changed(with_moment(), has_holds=True, chosen_among=400)).all("p")[-1].text

    assert inferred.startswith("≈ Who held it is inferred from waits")
    assert inferred.endswith(
        "Chosen among 200 of 235 finished waits; the others were too many to be looked at one by "
        "one."
    )
    assert (
        "Holds were seen; short ones may be left out. Chosen among 235 of 235 finished waits."
    ) == seen


def test_holds_that_were_seen_are_drawn_as_they_are() -> None:
    """
    And none is inferred then.
    """
    worst = with_moment().worst
    assert worst is not None
    hold = Span(2, 0, worst.began_ns + 10 * MS, worst.began_ns + 30 * MS, None)
    changed = _changed(with_moment(), has_holds=True, spans=(*worst.spans, hold))

    crunching, serving, _ = _section(changed).one("table").all("tr")

    assert [("25.000%", "50.000%")] == _marks(crunching, "hold")
    assert [] == _marks(crunching, "hold assumed") + _marks(serving, "hold")


def test_what_was_not_looked_at_is_a_box_in_each_row() -> None:
    """
    And has its sign in the key.
    """
    worst = with_moment().worst
    assert worst is not None
    unseen = ((worst.began_ns + 30 * MS, worst.ended_ns),)
    section = _section(_changed(with_moment(), unseen=unseen))

    assert [[("75.000%", "25.000%")]] * 2 == [
        _marks(row, "unseen") for row in section.one("table").all("tr")[:2]
    ]
    assert "not looked at: too many waits in that second" in [
        entry.text for entry in section.one("ul").all("li")
    ]


def test_many_short_waits_become_few_marks() -> None:
    """
    Nobody could tell them apart, and a page has to open.
    """
    spans = tuple(
        Span(1, 0, 1000 * number, 1000 * number + 500, Kind.CONVOY, SERVING, CRUNCHING)
        for number in range(40_000)
    )
    crowded = replace(with_moment(), worst=Moment(0, 40 * MS, spans))

    assert 2000 > len(_section(crowded).all("rect"))


def test_only_so_many_threads_have_a_row() -> None:
    """
    Those with the most; the others are counted.
    """
    spans = tuple(
        Span(number, 0, 0, MS * (number + 1), Kind.CONVOY, SERVING, CRUNCHING)
        for number in range(20)
    )
    section = _section(replace(with_moment(), worst=Moment(0, 40 * MS, spans)))

    assert 17 == len(section.one("table").all("tr"))
    assert section.all("p")[-1].text.startswith("4 more threads waited or held it")


def test_names_of_the_process_do_nothing() -> None:
    """
    Neither as a role nor as a place.
    """
    recording = with_moment()
    seen = recording.observation
    threads = tuple(replace(one, role=EVIL) for one in seen.totals.threads)
    changed = replace(seen, totals=replace(seen.totals, threads=threads))

    section = _section(replace(recording, observation=changed))

    assert [] == section.all("img")
    assert [] == section.all("script")
