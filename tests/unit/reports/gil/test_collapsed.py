"""The recording as collapsed stacks."""

from dataclasses import replace

from gilscope.model.gil import Edge, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.reports.gil import collapsed
from support.recordings.gil import CRUNCHING, SERVING, convoy, stack, with_edges

_RUNS = (
    "Thread._bootstrap (threading.py:995);Thread._bootstrap_inner (threading.py:1038);"
    "Thread.run (threading.py:975)"
)
_CUT = "[deeper than what is noted];Thread.run (threading.py:975);crunch (app.py:5)"
_TORN = "[stack changed while being read]"

_WITH_EDGES = f"""\
holders;{_RUNS};crunch (app.py:4) 1130000000
holders;{_RUNS};crunch (app.py:4);{_TORN} 340000000
holders;{_CUT};Pattern.scan <café> (match.py:27) 350000000
holders;[no Python code] 70000000
holders;[unknown] 50000000
waiters;{_RUNS};crunch (app.py:4) 410000000
waiters;{_RUNS};serve (app.py:9);handle (app.py:13) 1530000000
"""


def _recording(*edges: Edge) -> Recording:
    recording = convoy()
    seen = recording.observation
    return replace(recording, observation=replace(seen, totals=replace(seen.totals, edges=edges)))


def test_stacks_of_both_ends() -> None:
    """
    One line a stack, outermost frame first, with brackets where frames are missing.
    """
    assert _WITH_EDGES == collapsed.render(with_edges())


def test_each_end_adds_up_to_all_time_lost() -> None:
    """
    No nanosecond vanishes at either end.
    """
    sums = {"holders": 0, "waiters": 0}
    for line in collapsed.render(with_edges()).splitlines():
        path, _, ns = line.rpartition(" ")
        sums[path.partition(";")[0]] += int(ns)

    lost_ns = sum(edge.lost.ns for edge in with_edges().observation.totals.edges)
    assert {"holders": lost_ns, "waiters": lost_ns} == sums


def test_names_do_not_break_the_format() -> None:
    """
    Semicolons are replaced and lines stay whole, whatever a function or a path is called.
    """
    hostile = stack(("a;b\nc\r\u2028\udcff", "/x/d;\te f.py", 1, 2))
    recording = _recording(Edge(Kind.UNKNOWN, hostile, hostile, Tally(5, 1)))

    name = "a:b c   (d: e f.py:2)"
    assert f"holders;{name} 5\nwaiters;{name} 5\n" == collapsed.render(recording)


def test_what_took_no_time_has_no_line() -> None:
    """
    A stack that weighs nothing could not be drawn.
    """
    edges = (
        Edge(Kind.UNKNOWN, SERVING, CRUNCHING, Tally(0, 1)),
        Edge(Kind.UNKNOWN, CRUNCHING, CRUNCHING, Tally(1, 1)),
    )
    both = collapsed.render(_recording(edges[1]))

    assert both == collapsed.render(_recording(*edges))
    assert "" == collapsed.render(_recording())
