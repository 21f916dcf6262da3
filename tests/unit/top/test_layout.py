"""Lines fitted to a width."""

import pytest
from rich.cells import cell_len

from gilscope.top.layout import fit, fit_site, left, right

_SITE = "Handler.do_get (lib/http/app.py:1234)"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (37, _SITE),
        (36, "Handler.do_get (…/app.py:1234)"),
        (30, "Handler.do_get (…/app.py:1234)"),
        (29, "Handler.do_g… (…/app.py:1234)"),
        (20, "Han… (…/app.py:1234)"),
        (19, "Handler.do_get (…/…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_site_loses_its_folders_first(width: int, shown: str) -> None:
    """
    The line number, the file and the beginning of the function's name stay as long as they can.
    """
    assert shown == fit_site(_SITE, width)
    assert cell_len(shown) <= width


def test_words_that_are_no_site_are_cut_at_the_end() -> None:
    """
    A role without a place, and a path without folders, have nothing else to lose.
    """
    assert "MainThr…" == fit_site("MainThread", 8)
    assert "w (verylong…" == fit_site("w (verylongname.py:7)", 12)


def test_width_is_counted_in_cells() -> None:
    """
    Wide characters take two cells, and none is cut in half.
    """
    assert "名前" == fit("名前", 4)
    assert "名…" == fit("名前", 3)
    assert "名 " == left("名", 3)
    assert " 7" == right("7", 2)
    assert "1234" == right("1234", 2)
