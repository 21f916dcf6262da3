"""Finds threads that queue for a whole switch interval each time they come back."""

from dataclasses import replace

import pytest

from gilscope.model.gil import Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.verdict.convoys import convoys_of
from gilscope.verdict.degree import Degree
from support.recordings.gil import MS, convoy, full_mode, observation, thread, with_edges


def _with(*lost: tuple[str, dict[Kind, Tally]]) -> Recording:
    threads = tuple(thread(tid, role, of) for tid, (role, of) in enumerate(lost, 1))
    return replace(convoy(), observation=observation(threads))


@pytest.mark.parametrize(
    ("lost", "degree"),
    [
        (Tally(1500 * MS, 100), Degree.SEVERE),
        (Tally(501 * MS, 21), Degree.SEVERE),
        (Tally(501 * MS, 20), Degree.MILD),
        (Tally(500 * MS, 100), Degree.MILD),
        (Tally(40 * MS, 10), Degree.MILD),
    ],
)
def test_degrees(lost: Tally, degree: Degree) -> None:
    """
    In two seconds: more than ten a second, and a quarter of a thread lost, is severe.
    """
    (found,) = convoys_of(_with(("serve", {Kind.CONVOY: lost})))

    assert (degree, lost) == (found.degree, found.lost)


@pytest.mark.parametrize("lost", [Tally(39 * MS, 10), Tally(1500 * MS, 9)])
def test_what_nobody_would_notice_is_none(lost: Tally) -> None:
    """
    Ten waits are a pattern, and two hundredths of a thread are more than noise.
    """
    assert () == convoys_of(_with(("serve", {Kind.CONVOY: lost})))


def test_how_often_of_how_many() -> None:
    """
    Of the waits after blocking calls; where holds are seen, of all the times it took the GIL.
    """
    (waits,) = convoys_of(convoy())
    (holds,) = convoys_of(full_mode())

    assert (100, 125, None) == (waits.lost.count, waits.returns, waits.acquires)
    assert (100, 125, 125) == (holds.lost.count, holds.returns, holds.acquires)
    assert (0.75, 15 * MS, 5 * MS) == (waits.time_share, waits.mean_ns, waits.interval_ns)


def test_behind_whom_they_queue() -> None:
    """
    Whose code kept the GIL in those waits, and not in others.
    """
    (found,) = convoys_of(with_edges())
    costliest = found.behind[0].frame

    assert costliest is not None
    assert "crunch" == costliest.function
    assert [1100 * MS, 350 * MS, 50 * MS] == [loss.lost.ns for loss in found.behind]
    assert ("crunch (app.py:2)",) == found.computing


def test_costliest_comes_first() -> None:
    """
    Whichever role is named first.
    """
    found = convoys_of(
        _with(
            ("a", {Kind.CONVOY: Tally(200 * MS, 20)}),
            ("b", {Kind.CONVOY: Tally(300 * MS, 20), Kind.PREEMPTION: Tally(MS, 1)}),
        )
    )

    assert ["b", "a"] == [each.role for each in found]
    assert [(), ("b",)] == [each.computing for each in found]
