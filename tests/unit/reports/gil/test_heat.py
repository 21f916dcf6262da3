"""What lines of code have cost."""

from dataclasses import replace

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import Frame, Stack
from gilscope.reports.gil.heat import Heat, hottest
from support.recordings.gil import CRUNCHING, MS, SERVING, with_edges


def _holder(function: str, line: int, first_line: int = 1) -> Stack:
    return Stack((Frame(function, "/srv/made.py", first_line, line),))


def _edge(holder: Stack, lost_ns: int) -> Edge:
    return Edge(Kind.CONVOY, SERVING, holder, Tally(lost_ns, 1))


def test_each_line_has_what_was_lost_behind_it() -> None:
    """
    Also by what it called, which is another file here; what the function itself waited is told.
    """
    (heat,) = hottest(with_edges().observation.totals.edges, Application(packages=("app",)))

    assert (4, "crunch") == (heat.frame.line, heat.frame.function)
    assert {4: Tally(1470 * MS, 205), 5: Tally(350 * MS, 30)} == heat.by_line
    assert Tally(1820 * MS, 235) == heat.lost
    assert Tally(1480 * MS, 145) == heat.others


def test_functions_are_few_and_costly() -> None:
    """
    Five at most, and none of less than a hundredth.
    """
    edges = [_edge(_holder(f"f{number}", 5), 100 - number) for number in range(9)]
    small = [_edge(_holder("large", 5), 1000), _edge(_holder("small", 5), 10)]

    assert ["f0", "f1", "f2", "f3", "f4"] == [
        heat.frame.function for heat in hottest(edges, EVERYBODYS)
    ]
    assert ["large"] == [heat.frame.function for heat in hottest(small, EVERYBODYS)]


def test_what_has_no_line_or_is_not_of_the_application_is_left_out() -> None:
    """
    There is nothing to be read there.
    """
    frame = replace(CRUNCHING.frames[0], line=None)
    library = Stack(CRUNCHING.frames[1:])

    assert () == hottest([_edge(Stack((frame,)), 9), _edge(library, 9)], EVERYBODYS)


def test_lines_around_the_hottest_are_shown() -> None:
    """
    Two on either side, not before the function, with its first line; of many the hottest twelve.
    """
    frame = Frame("f", "/srv/made.py", 10, 11)
    heat = Heat(frame, Tally(), Tally(), {11: Tally(9, 1), 30: Tally(5, 1)})
    many = {line: Tally(line, 1) for line in range(100, 500, 10)}

    assert (10, 11, 12, 13, 28, 29, 30, 31, 32) == heat.shown_lines
    assert 1 + 12 * 5 == len(replace(heat, by_line=many).shown_lines)
