"""The answer on one screen."""

from dataclasses import replace

import pytest

from gilscope.model.gil import (
    HeldBy,
    HolderSamples,
    Recording,
    Refusal,
    SlowDrop,
    Tally,
    TracingCost,
)
from gilscope.model.kinds import Kind
from gilscope.model.session import Session
from gilscope.reports.gil.text import screen
from gilscope.reports.gil.text.screen import MOST_LINES
from support.recordings.gil import (
    CRUNCHING,
    MATCHING,
    MS,
    convoy,
    gil,
    observation,
    session_of,
    stack,
    thread,
    with_edges,
    with_holders,
)

_CONVOY = """\
app.py, pid 4711, CPython 3.11.2: 2.000s in contention mode

Severe: convoy: serve (app.py:8)
queued 50 times a second for at least a switch interval (5 ms), 15 ms on average:
75 % of its time, in 100 of the 125 times that it had to wait after a blocking call.
Behind crunch (app.py:4), for 73 % of that time.
What helps: compute in another process, or in code that releases the GIL: at most 1.130s less;
sys.setswitchinterval(0.0005): ≈ 589 us to 10.5 ms a wait, with ≈ 8.6 times as many switches.

Whose code kept the GIL, of 1.940s lost in 235 waits
   76 %    1.470s  crunch (app.py:4)
                     total += sum(range(20000))
   18 %    0.350s  Pattern.scan <café> (match.py:27)
    4 %    0.070s  (no Python code)

Who waited most
   79 %    1.530s  serve (app.py:8), mostly convoy
   21 %    0.410s  crunch (app.py:2) (2 threads), preemption

Not counted in full: 2 waits begun before the recording, counted without the first part.
Next: gilscope record -p 4711 -d 10s -o waits.html, with all stacks; or --full.
"""


def _as(recording: Recording, pid: int) -> Recording:
    seen = recording.observation
    return replace(recording, observation=replace(seen, process=replace(seen.process, pid=pid)))


def _hog(recording: Recording) -> Recording:
    seen = recording.observation
    slow = SlowDrop(MATCHING, Tally(1900 * MS, 2), 1000 * MS, in_flight_ns=1000 * MS)
    return replace(
        recording, observation=replace(seen, totals=replace(seen.totals, slow_drops=(slow,)))
    )


def _computing() -> Recording:
    """Return a recording in which nobody waits, and `crunch` has the GIL nearly all the time."""
    recording = replace(with_holders(), observation=observation(gils=(gil(),)))
    seen = recording.observation
    samples = HolderSamples(200, 2000 * MS, (HeldBy(CRUNCHING, 1900 * MS),))
    totals = replace(seen.totals, holder_samples=samples)
    return replace(recording, observation=replace(seen, totals=totals))


def _lines(*recordings: Recording) -> list[str]:
    return screen.render(session_of(*recordings)).splitlines()


def test_convoy() -> None:
    """
    The whole screen: how bad it is, whose code keeps the GIL, who waits, what comes next.
    """
    assert _CONVOY == screen.render(session_of(with_edges()))


def test_colour_changes_nothing_but_the_colour() -> None:
    """
    On a terminal the same words stand in colour.
    """
    coloured = screen.render(session_of(with_edges()), colour=True)
    for code in ("\033[1m", "\033[31m", "\033[2m", "\033[0m"):
        assert code in coloured
        coloured = coloured.replace(code, "")

    assert _CONVOY == coloured


def test_hog() -> None:
    """
    A call that does not end is said first, with advice of its own.
    """
    lines = _lines(_hog(with_edges()))

    assert "Severe: hog: Pattern.scan <café> (match.py:27)" == lines[2]
    assert lines[3].startswith("was asked 2 times to drop the GIL and kept it, 1 s at the longest")
    assert not [line for line in lines if line.startswith("queued")]


@pytest.mark.parametrize(
    ("lost", "held_ns", "words"),
    [
        (1800 * MS, 1600 * MS, "Severe: at any moment 0.90 threads were waiting for the GIL."),
        (300 * MS, 1600 * MS, "Mild: at any moment 0.15 threads were waiting for the GIL."),
        (30 * MS, 300 * MS, "None: 0.030s lost waiting for the GIL."),
    ],
)
def test_threads_that_take_turns(lost: int, held_ns: int, words: str) -> None:
    """
    There is advice where something is lost.
    """
    threads = (thread(1, "crunch (app.py:2)", {Kind.PREEMPTION: Tally(lost, 90)}),)
    lock = replace(gil(), held_ns=held_ns)
    lines = _lines(replace(convoy(), observation=observation(threads, (lock,))))

    assert words == lines[2]
    has_advice = any(line.startswith("Threads that compute take turns:") for line in lines)
    assert words.startswith("None") is not has_advice
    assert has_advice is any(line.startswith("What helps: ") for line in lines)


def test_nobody_waits() -> None:
    """
    Then it is told who has the GIL, and what that means.
    """
    lines = _lines(_computing())

    assert "None: no thread had to wait for the GIL." == lines[2]
    assert "That is no contention: whatever is slow here does not wait for the GIL." in lines
    assert " ≈ 95 % ±3   crunch (app.py:4)" in lines


def test_process_that_computes_is_told_where_none_has_lost_much() -> None:
    """
    A parent that has lost a millisecond says less than its child, which has the GIL all the time.
    """
    loss = thread(1, "serve (app.py:8)", {Kind.PREEMPTION: Tally(MS, 3)})
    parent = replace(convoy(), observation=observation((loss,)))
    lines = _lines(_as(parent, 1), _as(_computing(), 2))

    assert "2 processes with a GIL: 2.000s in contention mode" == lines[0]
    assert "None: 0.001s lost waiting for the GIL." == lines[2]
    assert "The one that held its GIL longest is app.py, pid 2." == lines[3]
    assert " ≈ 95 % ±3   crunch (app.py:4)" in lines


def test_several_processes() -> None:
    """
    The verdict is on the worst of them, the tables are on all.
    """
    mild = replace(_as(convoy(), 2), observation=replace(observation(), since_ns=1))
    lines = _lines(_as(with_edges(), 1), mild, _as(_hog(with_edges()), 3))

    assert "3 processes with a GIL: 2.000s in contention mode" == lines[0]
    assert "Severe in app.py, pid 3: hog: Pattern.scan <café> (match.py:27)" == lines[2]
    assert "3.880s lost waiting for the GIL, in 2 of them" in lines
    assert "   50 %    1.940s  app.py, pid 1" in lines
    assert "   76 %    2.940s  crunch (app.py:4)" in lines


def test_process_that_has_lost_all_of_it_is_told_as_if_it_were_alone() -> None:
    """
    The others are in a line.
    """
    quiet = replace(convoy(), observation=observation())
    lines = _lines(with_edges(), _as(quiet, 2), _as(quiet, 3))
    (others,) = [line for line in lines if line.startswith("Lost nothing: ")]

    assert "Lost nothing: app.py, pid 2, and 1 more." == others
    assert _CONVOY.splitlines() == [line for line in lines if line != others]


def test_process_that_computes_is_told_beside_those_that_have_lost_something() -> None:
    """
    Though it has lost nothing, it may be what is slow.
    """
    lines = _lines(with_edges(), _as(_computing(), 2))

    told = lines.index("Lost nothing: app.py, pid 2.") + 1
    assert "app.py, pid 2 computes, ≈ 95 % of the time: crunch (app.py:4)." == lines[told]


def test_process_that_has_lost_nearly_all_of_it() -> None:
    """
    The others have lost something, which is said.
    """
    thread_of_it = thread(1, "serve (app.py:8)", {Kind.PREEMPTION: Tally(MS, 3)})
    little = _as(replace(convoy(), observation=observation((thread_of_it,))), 2)
    lines = _lines(with_edges(), little)

    assert "Lost less than 1 % of all: app.py, pid 2." in lines
    assert "Severe: convoy: serve (app.py:8)" == lines[2]


def test_process_that_has_ended_is_not_recorded_again() -> None:
    """
    The next command is the same one.
    """
    recording = convoy()
    ended = replace(recording, observation=replace(recording.observation, ended=True))

    assert (
        "Next: the same with -o waits.html, with all stacks; or with --full." == (_lines(ended)[-1])
    )


def test_figures_that_cannot_be_trusted_are_not_shown() -> None:
    """
    The reason is.
    """
    recording = convoy()
    seen = replace(recording.observation, invalid="the probes have gone")
    lines = _lines(replace(recording, observation=seen))

    assert "Nothing is reported of pid 4711, because the probes have gone." == lines[1]
    assert not [line for line in lines if " % " in line]


def test_it_fits_on_a_screen() -> None:
    """
    Whatever there is to tell, of one process and of many.
    """
    many = tuple(
        replace(edge, holder=stack((f"function{number}", "/srv/app.py", number, number)))
        for number, edge in enumerate(with_edges().observation.totals.edges * 5)
    )
    recording = with_edges()
    seen = recording.observation
    sources = {("/srv/app.py", number): "x = 1" for number in range(30)}
    totals = replace(seen.totals, edges=many, lost_events={"notice": 3, "edge": 2})
    crowded = replace(recording, observation=replace(seen, totals=totals), sources={**sources})
    refusals = tuple(Refusal(pid, "old.py", "2.7", "it is CPython 2.7") for pid in range(9))
    recordings = tuple(_as(each, pid) for pid, each in enumerate([crowded, _hog(crowded)] * 4))
    session = Session(2000 * MS, "contention", recordings, refusals=refusals, left_out=3)

    child = _as(_computing(), 2)
    with_child = Session(2000 * MS, "contention", (_hog(crowded), child), refusals=refusals)

    for each in (session_of(crowded), session_of(_hog(crowded)), session, with_child):
        assert len(screen.render(each).splitlines()) <= MOST_LINES


def test_what_was_scaled_up_is_marked() -> None:
    """
    Of a `serve` that reads the stacks of some of the waits, places are estimates; sums are not.
    """
    recording = _with_stack_share(with_edges(), 0.25)
    lines = screen.render(session_of(recording)).splitlines()

    assert "Whose code kept the GIL, of 1.940s lost in 235 waits" in lines
    assert " ≈ 76 %  ≈ 1.470s  crunch (app.py:4)" in lines


def _with_stack_share(recording: Recording, share: float) -> Recording:
    seen = recording.observation
    totals = replace(seen.totals, cost=TracingCost(0, 0.0, 0, stack_share=share))
    return replace(recording, observation=replace(seen, totals=totals))
