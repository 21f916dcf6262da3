"""Charts: where things are drawn."""

import xml.etree.ElementTree as ET

import pytest
from bench.svg import Bar, Chart, Group, draw, ticks

_SVG = "{http://www.w3.org/2000/svg}"


def _drawn(chart: Chart) -> ET.Element:
    # S314: written by the function under test.
    return ET.fromstring(draw(chart))  # noqa: S314


def _of_class(picture: ET.Element, kind: str) -> list[ET.Element]:
    return [each for each in picture.iter() if each.get("class") == kind]


def _texts(picture: ET.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{_SVG}text")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 11.4, (0, 2, 4, 6, 8, 10, 12)),
        (-3.0, 8.0, (-4, -2, 0, 2, 4, 6, 8)),
        (0.0, 0.9, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.0, 0.0, (0.0, 0.1)),
        (-0.4, 481.0, (-100, 0, 100, 200, 300, 400, 500)),
    ],
)
def test_ticks_are_round_and_reach_the_limits(
    low: float, high: float, expected: tuple[float, ...]
) -> None:
    """
    Whatever is drawn lies between the first and the last.
    """
    assert expected == tuple(round(tick, 9) for tick in ticks(low, high))


def test_bars_are_as_long_as_their_values() -> None:
    """
    Twice the value, twice the length; a negative one ends where the others begin.
    """
    bars = [Bar("", value, value, value, "ours") for value in (2.0, 4.0, -2.0)]
    drawn = _of_class(_drawn(Chart("", "", [Group("", bars)], digits=1)), "ours")
    first, second, third = [(float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in drawn]

    assert second == (first[0], 2 * first[1])
    assert third == (first[0] - first[1], first[1])


def test_range_and_value_are_written() -> None:
    """
    A reader need not measure the picture.
    """
    chart = Chart("Cost", "", [Group("", [Bar("a & b", 1.5, -1.0, 2.25, "peer")])], 2, " %")
    texts = _texts(_drawn(chart))

    assert {"Cost", "a & b", "1.50 % [-1.00..2.25]"} <= set(texts)


def test_groups_may_have_scales_of_their_own() -> None:
    """
    Then both of two values far apart reach equally far.
    """
    groups = [Group("", [Bar("", value, value, value, "ours")]) for value in (1.0, 500.0)]
    widths = {
        own: [
            float(bar.attrib["width"])
            for bar in _of_class(_drawn(Chart("", "", groups, 1, own_scales=own)), "ours")
        ]
        for own in (False, True)
    }

    assert widths[True][0] == widths[True][1] == widths[False][1]
    assert 1.0 > widths[False][0]


def test_everything_lies_inside() -> None:
    """
    The height grows with the bars, and the last axis is in the picture.
    """
    groups = [Group("title", [Bar("", 1.0, 0.0, 2.0, "noise")] * count) for count in (1, 7)]
    picture = _drawn(Chart("", "", groups, 1))

    assert float(picture.attrib["height"]) > max(
        float(each.attrib["y"]) for each in picture.iter(f"{_SVG}text")
    )


def test_dark_pages_are_thought_of() -> None:
    """
    Colours follow the reader's scheme.
    """
    assert "prefers-color-scheme: dark" in draw(Chart("", "", [], 1))
