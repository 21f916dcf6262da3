"""Lines and points: where they are drawn."""

import xml.etree.ElementTree as ET

from bench.experiments.plots import Axis, Lines, Mark, Point, Series, draw_lines

_SVG = "{http://www.w3.org/2000/svg}"


def _drawn(lines: Lines) -> ET.Element:
    # S314: written by the function under test.
    return ET.fromstring(draw_lines(lines))  # noqa: S314


def _centres(picture: ET.Element) -> list[tuple[float, float]]:
    found = picture.iter(f"{_SVG}circle")
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in found]


def test_a_logarithmic_axis_has_equal_steps() -> None:
    """
    Ten times the value is as far up everywhere.
    """
    points = [Point(number, 10.0**number) for number in range(3)]
    lines = Lines("", "", Axis("x"), Axis("y", is_log=True), [Series("a", points)])
    first, second, third, _ = _centres(_drawn(lines))

    assert round(first[1] - second[1], 1) == round(second[1] - third[1], 1) > 0
    assert round(second[0] - first[0], 1) == round(third[0] - second[0], 1) > 0


def test_axes_have_titles_and_the_source_is_apart() -> None:
    """
    A reader sees units, and which figures are the source's.
    """
    series = [Series("ours", [Point(0, 1)]), Series("theirs", [Point(0, 2)], is_source=True)]
    marks = [Mark("switch interval", 5)]
    picture = _drawn(Lines("Title", "s", Axis("threads"), Axis("ms & s"), series, marks))
    texts = {each.text for each in picture.iter(f"{_SVG}text")}
    classes = [each.get("class") or "" for each in picture.iter(f"{_SVG}rect")]

    assert {"Title", "threads", "ms & s", "ours", "theirs", "switch interval"} <= texts
    assert ["page", "c1 hollow", "c1 hollow"] == classes
