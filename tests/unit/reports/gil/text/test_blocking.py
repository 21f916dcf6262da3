"""What the report for people says about both ends of waits."""

from dataclasses import replace

from gilscope.model.gil import Edge, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.reports.gil.text import report as text_report
from gilscope.reports.gil.text.blocking import edge_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import CRUNCHING, MS, SERVING, convoy, stack, with_edges

_LIBRARY = "/usr/lib/python3.11/json/encoder.py"

_EDGES = """
Who kept whom waiting
Both ends are known for 97 % of the time lost.

1.100s lost waiting (90x GIL_CONVOY), 57 % of all
File "/srv/app.py", line 13, in handle
    os.read(fd, 1)
  called from File "/srv/app.py", line 9, in serve
held by
File "/srv/app.py", line 4, in crunch
    total += sum(range(20000))

0.350s lost waiting (30x GIL_CONVOY), 18 % of all
File "/srv/app.py", line 13, in handle
    os.read(fd, 1)
  called from File "/srv/app.py", line 9, in serve
held by
File "/srv/lib/match.py", line 27, in Pattern.scan <café>
  called from File "/srv/app.py", line 5, in crunch
  (deeper than what is noted)

0.340s lost waiting (90x GIL_PREEMPTION), 18 % of all
File "/srv/app.py", line 4, in crunch
    total += sum(range(20000))
held by
(stack changed while being read)
File "/srv/app.py", line 4, in crunch
    total += sum(range(20000))

0.070s lost waiting (20x GIL_PREEMPTION), 4 % of all
File "/srv/app.py", line 4, in crunch
    total += sum(range(20000))
held by
(no Python code)

0.050s lost waiting (5x GIL_CONVOY), 3 % of all
File "/srv/app.py", line 13, in handle
    os.read(fd, 1)
  called from File "/srv/app.py", line 9, in serve
held by
(unknown)

0.030s lost waiting (25x GIL_BLOCKING_CALL), 2 % of all
File "/srv/app.py", line 13, in handle
    os.read(fd, 1)
  called from File "/srv/app.py", line 9, in serve
held by
File "/srv/app.py", line 4, in crunch
    total += sum(range(20000))

Slow to drop the GIL
"""


def _with(*edges: Edge) -> Recording:
    recording = convoy()
    seen = recording.observation
    totals = replace(seen.totals, edges=edges)
    return replace(recording, observation=replace(seen, totals=totals))


def _lines(*edges: Edge) -> list[str]:
    return list(edge_lines(_with(*edges), Paint(on=False)))


def _edge(waiter: Stack, holder: Stack, ms: int, count: int = 1) -> Edge:
    return Edge(Kind.CONVOY, waiter, holder, Tally(ms * MS, count))


def _function(number: int) -> Stack:
    return stack((f"work_{number}", "/srv/app.py", 10 * number, 10 * number + 1))


def test_both_ends_are_shown_most_time_first() -> None:
    """
    Every state of a stack, between the verdicts and the table of roles.
    """
    report = text_report.render(with_edges())

    assert _EDGES in report
    assert report.index("Convoy: ") < report.index(_EDGES) < report.index("Time lost, by thread")


def test_order_is_that_of_the_time_lost() -> None:
    """
    Whatever order the edges came in.
    """
    edges = with_edges().observation.totals.edges

    assert _lines(*edges) == _lines(*reversed(edges))


def test_lines_and_callers_of_the_same_two_functions_are_shown_together() -> None:
    """
    The costliest pair of stacks stands for the others, whose lines are listed.
    """
    holders = [stack(("crunch", "/srv/app.py", 2, line)) for line in (4, 9, 5, 4)]

    lines = _lines(
        *(
            _edge(SERVING, holder, ms, 2)
            for holder, ms in zip(holders, (100, 60, 30, 4), strict=True)
        )
    )

    assert [
        "0.194s lost waiting (8x GIL_CONVOY), 10 % of all",
        'File "/srv/app.py", line 13, in handle',
        '  called from File "/srv/app.py", line 9, in serve',
        "held by",
        'File "/srv/app.py", line 4, in crunch',
        "  also at lines 5, 9",
        "The costliest of 4 pairs of stacks, with 0.100s.",
    ] == lines[3:]


def test_functions_of_the_same_name_are_kept_apart() -> None:
    """
    A name alone is not a place; neither is one in another kind of wait.
    """
    elsewhere = stack(("crunch", "/srv/lib/other.py", 2, 4))
    later = stack(("crunch", "/srv/app.py", 40, 44))

    lines = _lines(
        *(_edge(SERVING, holder, 100) for holder in (CRUNCHING, elsewhere, later)),
        replace(_edge(SERVING, CRUNCHING, 100), kind=Kind.BLOCKING_CALL),
    )

    assert 4 == sum(" lost waiting (1x GIL_" in line for line in lines)


def test_many_lines_are_counted() -> None:
    """
    Five of them are listed.
    """
    holders = [stack(("crunch", "/srv/app.py", 2, line)) for line in range(3, 11)]

    lines = _lines(*(_edge(SERVING, holder, 100 - 10 * n) for n, holder in enumerate(holders)))

    assert "  also at lines 4, 5, 6, 7, 8 and 2 more" in lines


def test_what_is_dear_is_shown_and_the_rest_is_counted() -> None:
    """
    Ten pairs of places; less than one percent of the time is left out, too.
    """
    dear = _lines(*(_edge(SERVING, _function(number), 100) for number in range(1, 14)))
    cheap = _lines(_edge(SERVING, _function(1), 1000), _edge(SERVING, _function(2), 10))

    assert 10 == sum(" lost waiting (1x" in line for line in dear)
    assert (
        "3 more pairs of places with 0.300s, 15 % of all, are left out here; "
        "--format json has everything."
    ) == dear[-1]
    assert (
        "1 more pair of places with 0.010s, 0.52 % of all, is left out here; "
        "--format json has everything."
    ) == cheap[-1]


def test_costliest_pair_is_shown_even_if_it_is_little() -> None:
    """
    Else the heading would stand alone.
    """
    assert 1 == sum(" lost waiting (" in line for line in _lines(_edge(SERVING, CRUNCHING, 1)))


def test_pair_without_ends_is_in_the_share_only() -> None:
    """
    Two unknown places say nothing.
    """
    lines = _lines(_edge(UNKNOWN_STACK, UNKNOWN_STACK, 1940))

    assert ["Who kept whom waiting", "Both ends are known for 0 % of the time lost."] == lines


def test_nothing_is_said_where_no_edges_are_known() -> None:
    """
    No heading over nothing.
    """
    assert [] == _lines()


def test_frames_of_the_application_are_never_left_out() -> None:
    """
    But where a function calls itself again and again.
    """
    library = [(f"call_{n}", _LIBRARY, 10 * n, 10 * n + 1) for n in range(1, 9)]
    page, walk = ("page", "/srv/views.py", 9, 12), ("walk", "/srv/tree.py", 3, 5)
    calls = [*library[:4], page, *library[4:6], walk, walk, walk, *library[6:]]

    lines = _lines(_edge(UNKNOWN_STACK, stack(*calls), 100))

    assert [
        f'File "{_LIBRARY}", line 11, in call_1',
        f'  called from File "{_LIBRARY}", line 21, in call_2',
        f'  called from File "{_LIBRARY}", line 31, in call_3',
        "  … 1 more call",
        '  called from File "/srv/views.py", line 12, in page',
        "  … 2 more calls",
        '  called from File "/srv/tree.py", line 5, in walk',
        "  … 3 more calls",
        f'  called from File "{_LIBRARY}", line 81, in call_8',
    ] == lines[6:]


def test_long_stacks_show_their_two_ends() -> None:
    """
    The callers next to the place, and the outermost one, which says which thread it is.
    """
    calls = [(f"call_{n}", _LIBRARY, 10 * n, 10 * n + 1) for n in range(1, 8)]
    bootstrap = ("Thread._bootstrap", "/usr/lib/python3.11/threading.py", 972, 995)

    whole = _lines(_edge(UNKNOWN_STACK, stack(*calls, bootstrap), 100))
    cut = _lines(_edge(UNKNOWN_STACK, stack(*calls, state=StackState.CUT), 100))

    assert [
        f'File "{_LIBRARY}", line 11, in call_1',
        f'  called from File "{_LIBRARY}", line 21, in call_2',
        f'  called from File "{_LIBRARY}", line 31, in call_3',
        "  … 3 more calls",
        f'  called from File "{_LIBRARY}", line 71, in call_7',
    ] == whole[6:]
    assert [
        f'File "{_LIBRARY}", line 11, in call_1',
        f'  called from File "{_LIBRARY}", line 21, in call_2',
        f'  called from File "{_LIBRARY}", line 31, in call_3',
        f'  called from File "{_LIBRARY}", line 41, in call_4',
        "  … 3 more calls",
        "  (deeper than what is noted)",
    ] == cut[6:]


def test_own_module_called_threading_is_no_part_of_python() -> None:
    """
    Only the standard library's frames are left out.
    """
    own = ("spawn", "/srv/threading.py", 1, 2)

    lines = _lines(_edge(UNKNOWN_STACK, stack(("f", "/srv/app.py", 3, 4), own), 100))

    assert '  called from File "/srv/threading.py", line 2, in spawn' == lines[-1]


def test_function_without_a_line_is_shown_at_its_beginning() -> None:
    """
    Its first line is a place to look at, and not the one that was executing.
    """
    lineless = Stack((Frame("crunch", "/srv/app.py", 2),))

    assert [
        'File "/srv/app.py", line 2, in crunch',
        "    (which of its lines is not known)",
    ] == _lines(_edge(UNKNOWN_STACK, lineless, 100))[6:]


def test_names_cannot_steer_the_terminal() -> None:
    """
    Control characters in names of functions, files, roles and processes are left out.
    """
    recording = _with(_edge(stack(("\033[2Jf", "/srv/\ra.py", 1, 2)), CRUNCHING, 100))
    seen = recording.observation
    threads = tuple(replace(thread, role="\033[2Jr") for thread in seen.totals.threads)
    nasty = replace(
        seen,
        process=replace(seen.process, name="\033]0;x\a"),
        totals=replace(seen.totals, threads=threads),
    )

    report = text_report.render(
        replace(recording, observation=nasty, sources={("/srv/\ra.py", 2): "\033[2Jx = 1"})
    )

    assert report.replace("\n", "").isprintable()
    assert 'File "/srv/ a.py", line 2, in [2Jf\n    [2Jx = 1\n' in report


def test_waiter_without_python_code_enters_python() -> None:
    """
    As each request does that comes from a server written in C.
    """
    lines = _lines(_edge(stack(state=StackState.NO_PYTHON), CRUNCHING, 9))
    place = lines.index("(no Python code)")

    assert ["  the thread enters Python: from C, or at its start", "held by"] == (
        lines[place + 1 : place + 3]
    )


def test_pairs_of_one_caller_are_rolled_up() -> None:
    """
    Once under the function that they share, before they are listed one by one.
    """
    leaves = [stack((name, "/srv/pi.py", 20, 21), ("spin", "/srv/pi.py", 10, 12)) for name in "abc"]
    lines = _lines(*(_edge(SERVING, holder, 100) for holder in leaves))

    at = lines.index("Rolled up by common caller")
    assert (
        "    0.300s   15 %  handle (app.py:11) behind spin (pi.py:10), 3 pairs of places"
        == (lines[at + 1])
    )
    assert 3 == len([line for line in lines if "lost waiting (1x" in line])
