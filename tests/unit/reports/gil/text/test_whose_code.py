"""What the report for people says first of who held the GIL."""

from dataclasses import replace

from gilscope.model.application import Application
from gilscope.model.gil import Edge, Recording, Tally, TracingCost
from gilscope.model.kinds import Kind
from gilscope.model.stack import Frame, Stack
from gilscope.reports.gil.text.whose_code import whose_code_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import MS, SERVING, convoy, with_edges

_LINES = """
Whose code kept the GIL
    1.470s   76 %  crunch (app.py:4), mostly GIL_CONVOY
                     total += sum(range(20000))
    0.350s   18 %  Pattern.scan <café> (match.py:27), GIL_CONVOY
    0.070s    4 %  (no Python code), GIL_PREEMPTION
    0.050s    3 %  (unknown), GIL_CONVOY
"""


def _lines(recording: Recording) -> list[str]:
    return list(whose_code_lines(recording, Paint(on=False)))


def test_functions_of_the_application_come_first() -> None:
    """
    Each with the line that cost the most.
    """
    assert _LINES.strip("\n").splitlines() == _lines(with_edges())


def test_what_was_scaled_up_is_marked() -> None:
    """
    Of a `serve` that reads the stacks of some of the waits.
    """
    recording = with_edges()
    cost = TracingCost(0, 0.0, 0, stack_share=0.25)
    totals = replace(recording.observation.totals, cost=cost)
    _, first, *_ = _lines(
        replace(recording, observation=replace(recording.observation, totals=totals))
    )

    assert "  ≈ 1.470s ≈ 76 %  crunch (app.py:4), mostly GIL_CONVOY" == first


def test_what_was_called_is_told_below() -> None:
    """
    Where what the user says is the application's stands above a library.
    """
    recording = replace(with_edges(), application=Application(folders=("/srv/lib",)))

    assert [
        "Whose code kept the GIL",
        "    1.470s   76 %  (libraries alone), mostly GIL_CONVOY",
        "                   in crunch (app.py:4)",
        "    0.350s   18 %  Pattern.scan <café> (match.py:27), GIL_CONVOY",
        "    0.070s    4 %  (no Python code), GIL_PREEMPTION",
        "    0.050s    3 %  (unknown), GIL_CONVOY",
        "Libraries alone: no code of the application called them; --app names it.",
    ] == _lines(recording)


def test_many_places_are_cut_short() -> None:
    """
    Five of them, and what the others come to.
    """
    seen = convoy().observation
    edges = tuple(
        Edge(Kind.CONVOY, SERVING, Stack((Frame(f"f{n}", "/srv/app.py", n, n),)), Tally(lost, 1))
        for n, lost in enumerate(ms * MS for ms in (400, 300, 200, 100, 90, 80, 70))
    )
    totals = replace(seen.totals, edges=edges)

    *_, last = lines = _lines(replace(convoy(), observation=replace(seen, totals=totals)))

    assert 1 + 5 + 1 == len(lines)
    assert "    0.150s    8 %  in 2 more places" == last


def test_a_share_with_many_digits_keeps_its_distance() -> None:
    """
    Of what is hardly anything.
    """
    seen = convoy().observation
    edges = tuple(
        Edge(Kind.CONVOY, SERVING, Stack((Frame(f"f{n}", "/srv/app.py", n, n),)), Tally(lost, 1))
        for n, lost in enumerate((4000 * MS, 3 * MS // 2, MS))
    )
    totals = replace(seen.totals, edges=edges)

    *_, last = _lines(replace(convoy(), observation=replace(seen, totals=totals)))

    assert "    0.003s 0.062 %  in 2 more places" == last


def test_where_stacks_are_not_read_there_is_nothing() -> None:
    """
    Not even a heading.
    """
    assert [] == _lines(convoy())
