"""What a recording comes to."""

from dataclasses import replace

from gilscope.model.gil import Recording, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.verdict.degree import Degree
from gilscope.verdict.verdict import verdict_of
from support.recordings.gil import CRUNCHING, MS, convoy, gil, observation, thread, with_edges


def _lost(kind: Kind, tally: Tally, held_ns: int | None = None) -> Recording:
    lock = replace(gil(), held_ns=held_ns)
    return replace(convoy(), observation=observation((thread(1, "a", {kind: tally}),), (lock,)))


def test_hog_is_worse_than_the_queue_behind_it() -> None:
    """
    Its cure is another one, so that no convoy is told.
    """
    recording = with_edges()
    seen = recording.observation
    slow = SlowDrop(CRUNCHING, Tally(400 * MS, 4), 200 * MS)
    totals = replace(seen.totals, slow_drops=(slow,))
    verdict = verdict_of(replace(recording, observation=replace(seen, totals=totals)))

    assert (Degree.SEVERE, None) == (verdict.degree, verdict.convoy)
    assert verdict.hog is not None


def test_convoy() -> None:
    """
    With how many threads wait at any moment.
    """
    verdict = verdict_of(convoy())

    assert (Degree.SEVERE, 0.97) == (verdict.degree, verdict.waiting)
    assert verdict.convoy is not None
    assert "serve (app.py:8)" == verdict.convoy.role


def test_threads_that_take_turns() -> None:
    """
    How bad that is depends on how much the GIL is held.
    """
    one = verdict_of(_lost(Kind.PREEMPTION, Tally(1800 * MS, 300), held_ns=2000 * MS))
    most = verdict_of(_lost(Kind.PREEMPTION, Tally(1800 * MS, 300), held_ns=1700 * MS))

    assert (Degree.MILD, Degree.SEVERE) == (one.degree, most.degree)
    assert (None, None) == (one.convoy, one.hog)


def test_nobody_waits() -> None:
    """
    There is nothing to be told.
    """
    verdict = verdict_of(replace(convoy(), observation=observation()))

    assert (Degree.NONE, 0.0, None, None) == (
        verdict.degree,
        verdict.waiting,
        verdict.hog,
        verdict.convoy,
    )
