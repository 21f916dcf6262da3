"""Source with what its lines have cost."""

from dataclasses import replace

from markupsafe import Markup

from gilscope.model.application import Application
from gilscope.model.gil import Recording
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html.heat import heat_section
from support.recordings.gil import MS, with_edges, with_listings
from support.recordings.html import EVIL
from support.reports.html_tree import Element, parse


def _section(recording: Recording) -> Element:
    changed = replace(recording, application=Application(packages=("app",)))
    return parse(Markup("").join(heat_section(changed, 1940 * MS, SiteNames()))).one("section")


def test_nothing_is_shown_without_sources() -> None:
    """
    Where they cannot be read, the table of functions says it all.
    """
    assert [] == list(heat_section(with_edges(), 1940 * MS, SiteNames()))


def test_margin_has_the_cost_of_each_line() -> None:
    """
    The function up to its end, the next one not.
    """
    assert [
        ["", "2", "def crunch():"],
        ["", "3", "total = 0"],
        ["1.470 s", "4", "total += sum(range(20000))"],
        ["0.350 s", "5", "total += scan(total)"],
    ] == [[cell.text for cell in row.all("td")] for row in _section(with_listings()).all("tr")]


def test_lines_are_indented() -> None:
    """
    As in the file.
    """
    page = Markup("").join(heat_section(with_listings(), 1940 * MS, SiteNames()))

    assert "<code>    total += scan(total)</code>" in page


def test_colours_go_by_the_hottest_line() -> None:
    """
    Nine shades; a line without any cost has none.
    """
    rows = _section(with_listings()).all("tr")

    assert ["n", "n", "n s9", "n s3"] == [row.all("td")[0].attributes["class"] for row in rows]


def test_gain_is_what_others_have_lost() -> None:
    """
    As a bound, whose assumption is told.
    """
    section = _section(with_listings())

    assert (
        "1.820 s lost behind it, 7.74 ms at a time on average. If it did not keep the GIL, others "
        "would wait up to 1.480 s less: 76 % of the time lost."
    ) == section.one("figcaption").one("p").text
    assert "as if nothing held the GIL in its place" in section.all("p")[-1].text


def test_lines_that_are_far_apart_are_told_apart() -> None:
    """
    By a row of dots.
    """
    recording = with_listings()
    listings = {place: line for place, line in recording.listings.items() if place[1] != 3}

    rows = _section(replace(recording, listings=listings)).all("tr")

    assert ["", "⋮", ""] == [cell.text for cell in rows[1].all("td")]


def test_source_does_nothing() -> None:
    """
    It is text, whatever it says.
    """
    recording = with_listings()
    listings = dict.fromkeys(recording.listings, f"    {EVIL}")

    section = _section(replace(recording, listings=listings))

    assert [] == section.all("img")
    assert [] == section.all("script")
