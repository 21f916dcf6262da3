"""What has changed, side by side."""

import math

from gilscope.reports.comparison import MOST_PLACES, markdown, text
from gilscope.verdict.figures import Figures

_BEFORE = Figures(
    10.0,
    0.98,
    0.49,
    2.0,
    95.5,
    0.008388608,
    0.016777216,
    3.0,
    0.041,
    {"compute_price (quotes.py)": 0.97, "answer (quotes.py)": 0.01},
    {"answer (quotes.py)": 0.98, "MainThread": 0.001},
)
_AFTER = Figures(
    duration_s=5.0,
    waiting=0.02,
    convoys_per_s=0.0,
    wait_p50_s=0.000131072,
    wait_p99_s=math.inf,
    places={"answer (quotes.py)": 0.02},
)


def test_figures_and_places_stand_side_by_side() -> None:
    """
    The places that have changed the most come first.
    """
    assert """\
                                before    after  change
  duration                        10 s      5 s
  threads waiting                 0.98     0.02   -98 %
  seconds lost per CPU second     0.49  unknown
  cores used                         2  unknown
  convoy waits a second           95.5        0  -100 %
  p50 of waits                 8.39 ms   131 us   -98 %
  p99 of waits                 16.8 ms   longer     new
  slow drops a second                3        0  -100 %
  longest drop                   41 ms     0 ns  -100 %

Whose code kept the GIL, in threads kept waiting at any moment
  compute_price (quotes.py)  0.97     0  -100 %
  answer (quotes.py)         0.01  0.02  +100 %

Who waited, in threads waiting at any moment
  answer (quotes.py)  0.98  0  -100 %
""" == text(_BEFORE, _AFTER)


def test_markdown_is_three_tables() -> None:
    """
    Names cannot end a cell, nor become HTML.
    """
    evil = Figures(1.0, 0.5, places={"<b>|`x` (a.py)": 0.5}, roles={"<i>": 0.5})
    shown = markdown(evil, evil)

    assert "| GIL | before | after | change |\n| --- | ---: | ---: | ---: |\n" in shown
    assert "| threads waiting | 0.5 | 0.5 | +0 % |\n" in shown
    assert "| &lt;b&gt;\\|'x' (a.py) | 0.5 | 0.5 | +0 % |\n" in shown
    assert "| threads waiting in | before | after | change |\n" in shown
    assert "| &lt;i&gt; | 0.5 | 0.5 | +0 % |\n" in shown


def test_few_places_are_shown() -> None:
    """
    The others together; those that keep nobody waiting not at all.
    """
    many = Figures(1.0, 5.0, places={f"f{number:02} (a.py)": 0.1 for number in range(20)})
    none = Figures(1.0, 0.0)
    lines = text(none, many).splitlines()

    assert MOST_PLACES == sum(line.startswith("  f") for line in lines)
    (rest,) = [line for line in lines if "everything else" in line]
    assert rest.endswith("  0    1  new")
    assert 2 == text(none, none).count("nobody, in either")
