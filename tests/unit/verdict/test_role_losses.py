"""What the threads of each role have lost."""

from dataclasses import replace

from gilscope.model.gil import Tally
from gilscope.model.kinds import Kind
from gilscope.verdict.role_losses import role_losses
from support.recordings.gil import MS, convoy, full_mode, observation, thread


def test_threads_of_a_role_are_added_up() -> None:
    """
    So is the time for which they were seen.
    """
    serve, crunch = role_losses([convoy()])

    assert ("serve (app.py:8)", 1, Tally(1530 * MS, 125)) == (
        serve.role,
        serve.threads,
        serve.whole,
    )
    assert ("crunch (app.py:2)", 2, Tally(410 * MS, 110)) == (
        crunch.role,
        crunch.threads,
        crunch.whole,
    )
    assert (Kind.CONVOY, Kind.PREEMPTION) == (serve.kind, crunch.kind)
    assert (2000 * MS, 4000 * MS) == (serve.time_ns, crunch.time_ns)


def test_roles_of_several_processes_are_added_up() -> None:
    """
    Workers of one program have the same roles; each was seen for as long as its process.
    """
    longer = replace(convoy(), duration_ns=6000 * MS)
    serve, _ = role_losses([convoy(), longer])

    assert (2, Tally(3060 * MS, 250), 8000 * MS) == (serve.threads, serve.whole, serve.time_ns)


def test_takes_are_known_where_holds_are_seen() -> None:
    """
    And only there.
    """
    assert [125, 350] == [loss.acquires for loss in role_losses([full_mode()])]
    assert [None, None] == [loss.acquires for loss in role_losses([convoy()])]


def test_threads_that_lost_nothing_have_no_row() -> None:
    """
    A thread that has not come to its own code is called a starting one.
    """
    threads = (
        thread(1, "idle (app.py:1)", {}),
        thread(2, None, {Kind.UNKNOWN: Tally(MS, 1)}),
    )
    recording = replace(convoy(), observation=observation(threads))

    assert ["starting"] == [loss.role for loss in role_losses([recording])]
