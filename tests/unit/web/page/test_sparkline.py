"""Small curves in tables."""

import re
from xml.etree import ElementTree as ET

from gilscope.series.recent import Curve, Stretch
from gilscope.web.page.sparkline import held_cell, lost_cell

_S = 1_000_000_000


def _curve(*stretches: tuple[int, int, float, float | None]) -> Curve:
    made = tuple(Stretch(began * _S, ended * _S, *values) for began, ended, *values in stretches)  # type: ignore[arg-type]
    return Curve(made[-1].lost, made[-1].held, made)


def _path(cell: str) -> str:
    (path,) = re.findall(' d="([^"]*)"', cell)
    return str(path)


def test_a_second_is_a_unit_and_the_height_is_one_thread() -> None:
    """
    Five minutes are 300 wide; half a thread is half of 24 high.
    """
    cell = lost_cell(_curve((20, 10, 0.5, None), (10, 0, 0.25, None)))

    assert cell.startswith("25 %<svg ")
    assert 'viewBox="0 0 300 24"' in cell
    assert "M280 24V12H290V18H300V24Z" == _path(cell)


def test_more_than_one_thread_makes_the_curve_less_high() -> None:
    """
    The most there was is the full height.
    """
    assert "M280 24V0H290V12H300V24Z" == _path(
        lost_cell(_curve((20, 10, 2.0, None), (10, 0, 1.0, None)))
    )


def test_what_is_not_known_is_a_gap() -> None:
    """
    Neither nothing nor the same as before.
    """
    assert "M270 24V12H280V24ZM290 24V6H300V24Z" == _path(
        held_cell(_curve((30, 20, 0, 0.5), (20, 10, 0, None), (10, 0, 0, 0.75)))
    )


def test_curve_is_told_in_words_too() -> None:
    """
    For those who do not see it, and for a pointer that rests on it.
    """
    words = "25 % now; in the last five minutes 0 % to 191 %"
    cell = lost_cell(_curve((30, 20, 1.91, None), (20, 10, 0.0, None), (10, 0, 0.25, None)))

    drawn = ET.fromstring(cell[cell.index("<svg") :])  # noqa: S314 - made here
    assert ("img", words) == (drawn.get("role"), drawn.get("aria-label"))
    assert words == drawn.findtext("title")


def test_nothing_is_drawn_where_nothing_is_known() -> None:
    """
    Contention mode of the C library knows no held time, for example.
    """
    curve = _curve((10, 0, 0.5, None))

    assert ["", "", ""] == [held_cell(curve), held_cell(None), lost_cell(None)]
    assert "" == lost_cell(Curve(None, None, ()))
