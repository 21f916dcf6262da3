"""What a tracer adds to a dump."""

from dataclasses import replace

from gilscope.dump.figures import with_figures
from gilscope.model.gil import GilObservation
from gilscope.model.moment.dump import Trigger
from support.recordings.dump import held
from support.recordings.gil import with_edges

_MS = 1_000_000
_TRIGGER = Trigger(9, 500 * _MS, 500 * _MS)


def _seen(waiting_ns: int) -> GilObservation:
    seen = with_edges().observation
    thread = replace(seen.totals.threads[0], tid=9, is_alive=True, waiting_ns=waiting_ns)
    drops = tuple(
        replace(drop, in_flight_ns=in_flight_ns)
        for drop, in_flight_ns in zip(seen.totals.slow_drops, (505 * _MS,), strict=False)
    )
    return replace(seen, totals=replace(seen.totals, threads=(thread,), slow_drops=drops))


def test_times_are_those_of_the_dump() -> None:
    """
    The tracer was asked 4 ms later; who does not wait for the GIL in the dump has no such time.
    """
    dump = with_figures(held(), _seen(514 * _MS), _seen(0), later_ns=4 * _MS, trigger=_TRIGGER)

    assert [None, None, 510 * _MS, None] == [each.waiting_ns for each in dump.threads]
    assert Trigger(9, 510 * _MS, 500 * _MS) == dump.trigger
    assert 501 * _MS == dump.gils[0].held_ns


def test_who_had_just_woken_up() -> None:
    """
    A thread that was ready at that moment waits all the same, as the tracer knows.
    """
    *others, awake, native = held().threads
    awake = replace(awake, call=None, call_words="", awaited=None, gil_cond=None)
    dump = replace(held(), threads=(*others, awake, native))
    dump = replace(dump, gils=(replace(dump.gils[0], waiting_tids=(8,)),))

    told = with_figures(dump, _seen(514 * _MS), _seen(0), later_ns=4 * _MS, trigger=_TRIGGER)

    assert (8, 9) == told.gils[0].waiting_tids
    assert "waits for the GIL" == told.threads[2].call_words
    assert 510 * _MS == told.threads[2].waiting_ns


def test_a_wait_that_is_over() -> None:
    """
    It has lasted as long as the limit at the least, and nothing is said of a hold.
    """
    seen = _seen(0)
    over = replace(seen, totals=replace(seen.totals, slow_drops=()))

    dump = with_figures(held(), over, over, later_ns=4 * _MS, trigger=_TRIGGER)

    assert 500 * _MS == dump.trigger.waited_ns if dump.trigger else None
    assert dump.gils[0].held_ns is None


def test_several_gils() -> None:
    """
    Nobody can tell whose drop request it is.
    """
    two = replace(held(), gils=held().gils * 2)

    dump = with_figures(two, _seen(1), _seen(1), later_ns=0, trigger=_TRIGGER)

    assert [None, None] == [gil.held_ns for gil in dump.gils]


def test_pairs_are_those_of_the_last_seconds() -> None:
    """
    The costliest first, without those that cost nothing lately.
    """
    lately = _seen(0)
    edges = lately.totals.edges
    quiet = replace(edges[0], lost=replace(edges[0].lost, ns=0))
    lately = replace(lately, totals=replace(lately.totals, edges=(quiet, *edges)))

    dump = with_figures(held(), _seen(0), lately, later_ns=0, trigger=_TRIGGER)

    assert dump.pairs == tuple(sorted(edges, key=lambda edge: -edge.lost.ns))
    assert lately.totals.at_ns - lately.since_ns == dump.pairs_ns


def test_without_stacks_there_are_no_pairs() -> None:
    """
    That is not the same as none that cost anything.
    """
    seen = _seen(0)
    blind = replace(seen, totals=replace(seen.totals, has_stacks=False, edges=()))

    assert with_figures(held(), blind, blind, later_ns=0, trigger=_TRIGGER).pairs is None
