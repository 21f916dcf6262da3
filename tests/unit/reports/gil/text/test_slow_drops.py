"""What the report for people says about code that does not let go."""

from dataclasses import replace

from gilscope.model.gil import SlowDrop, Tally
from gilscope.model.stack import Stack
from gilscope.reports.gil.text import report as text_report
from gilscope.reports.gil.text.slow_drops import slow_drop_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import MS, convoy, stack, with_edges

_CULPRITS = """
Slow to drop the GIL
Python code drops it within microseconds. What follows is code in C that keeps the GIL,
or a thread that the machine had no CPU for.
What helps: smaller pieces of work, C code that releases the GIL, another process.

0.260s of drop latency (12x asked, the longest for 41 ms)
File "/srv/lib/match.py", line 27, in Pattern.scan <café>
  called from File "/srv/app.py", line 5, in crunch
  (deeper than what is noted)

0.030s of drop latency (1x asked, the longest for 30 ms)
(no Python code)

Time lost, by thread role and kind
"""


def _lines(*slow_drops: SlowDrop) -> list[str]:
    recording = convoy()
    seen = recording.observation
    totals = replace(seen.totals, slow_drops=slow_drops)
    changed = replace(recording, observation=replace(seen, totals=totals))
    return list(slow_drop_lines(changed, Paint(on=False)))


def _slow_drop(holder: Stack, ms: int, longest_ms: int) -> SlowDrop:
    return SlowDrop(holder, Tally(ms * MS, 2), longest_ms * MS)


def test_slow_drops_stand_behind_the_edges() -> None:
    """
    Most time first, with number, total, longest and stack.
    """
    assert _CULPRITS in text_report.render(with_edges())


def test_nothing_is_said_where_all_let_go() -> None:
    """
    No heading over nothing.
    """
    assert [] == _lines()


def test_lines_of_one_function_are_shown_together() -> None:
    """
    The longest is that of all of them.
    """
    places = [stack(("match", "/srv/app.py", 2, line)) for line in (4, 7)]

    lines = _lines(_slow_drop(places[0], 50, 30), _slow_drop(places[1], 60, 20))

    assert [
        "0.110s of drop latency (4x asked, the longest for 30 ms)",
        'File "/srv/app.py", line 7, in match',
        "  also at line 4",
    ] == lines[5:]


def test_five_places_are_shown_and_the_rest_is_counted() -> None:
    """
    No one works on more at a time.
    """
    places = [stack((f"match_{n}", "/srv/app.py", n, n)) for n in range(7)]

    lines = _lines(*(_slow_drop(place, 50, 30) for place in places))

    assert 5 == sum(" of drop latency" in line for line in lines)
    assert "2 more places with 0.100s are left out here; --format json has all." == lines[-1]
