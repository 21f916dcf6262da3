"""What was lost to a holder, shared out among the states in which it kept the GIL."""

import sys
from dataclasses import replace

from gilscope.gil.totals.held_up import HeldUpSums
from gilscope.model.gil import Edge, HeldBy, HeldUp, HolderSamples, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.model.stack import UNKNOWN_STACK, Stack
from support.recordings.gil import CRUNCHING, MATCHING, SERVING, stack

_GC = HoldState(State.GC, "generation 2")
_PYTHON = HoldState(State.PYTHON)


def _edge(ns: int, holder: Stack = CRUNCHING, kind: Kind = Kind.CONVOY) -> Edge:
    return Edge(kind, SERVING, holder, Tally(ns, 1))


def _samples(*held: HeldBy, samples: int = 5) -> HolderSamples:
    return HolderSamples(samples, 1000, held)


def _sums(found: tuple[HeldUp, ...]) -> dict[HoldState, int]:
    sums: dict[HoldState, int] = {}
    for each in found:
        sums[each.state] = sums.get(each.state, 0) + each.ns
    return sums


def test_the_time_that_others_waited_decides() -> None:
    """
    However long it had the GIL while nobody waited; to the last nanosecond.
    """
    samples = _samples(HeldBy(CRUNCHING, 900, _PYTHON, 100), HeldBy(CRUNCHING, 100, _GC, 200))
    found = HeldUpSums().enter((_edge(100), _edge(1, kind=Kind.PREEMPTION)), samples)

    assert {
        HeldUp(CRUNCHING, Kind.CONVOY, _GC, 67),
        HeldUp(CRUNCHING, Kind.CONVOY, _PYTHON, 33),
        HeldUp(CRUNCHING, Kind.PREEMPTION, _GC, 1),
    } == set(found)


def test_where_nobody_was_seen_waiting_held_time_decides() -> None:
    """
    Short waits are in no sample.
    """
    samples = _samples(HeldBy(CRUNCHING, 300, _PYTHON), HeldBy(CRUNCHING, 100, _GC))

    assert {_PYTHON: 75, _GC: 25} == _sums(HeldUpSums().enter((_edge(100),), samples))


def test_samples_of_the_same_function_count_for_all_that_it_calls() -> None:
    """
    A holder is told by the application's function, and its samples are few.
    """
    called = stack(("dumps", "/usr/lib/python3.11/json/__init__.py", 1, 2), _frame_of_crunching())
    samples = _samples(HeldBy(CRUNCHING, 10, _GC, 10))

    assert {_GC: 7} == _sums(HeldUpSums().enter((_edge(7, called),), samples))


def _frame_of_crunching() -> tuple[str, str, int, int]:
    frame = CRUNCHING.frames[0]
    return frame.function, frame.file, frame.first_line, frame.line or 0


def test_what_is_lost_later_is_shared_out_by_what_is_seen_later() -> None:
    """
    And what has been shared out stays: no figure falls.
    """
    sums = HeldUpSums()
    sums.enter((_edge(100),), _samples(HeldBy(CRUNCHING, 10, _PYTHON, 10)))
    later = _samples(HeldBy(CRUNCHING, 10, _PYTHON, 10), HeldBy(CRUNCHING, 10, _GC, 10))

    assert {_PYTHON: 100, _GC: 50} == _sums(sums.enter((_edge(150),), later))
    assert {_PYTHON: 105, _GC: 55} == _sums(sums.enter((_edge(160),), later))


def test_a_function_that_no_sample_has_met_is_brief() -> None:
    """
    If there are many; before, and of a stack that is not known, nothing can be said.
    """
    edges = (_edge(10, MATCHING), _edge(5, UNKNOWN_STACK))
    few, many = _samples(samples=19), _samples(samples=20)

    assert {UNKNOWN_HOLD: 15} == _sums(HeldUpSums().enter(edges, few))
    assert {_PYTHON: 10, UNKNOWN_HOLD: 5} == _sums(HeldUpSums().enter(edges, many))
    assert {UNKNOWN_HOLD: 15} == _sums(HeldUpSums().enter(edges, None))


def test_long_waits_for_a_function_that_is_never_met_have_another_reason() -> None:
    """
    The lock is free, perhaps, and the thread that waits has no CPU.
    """
    edges = (_edge(10_000_001, MATCHING), _edge(10_000_000, SERVING))

    assert {UNKNOWN_HOLD: 10_000_001, _PYTHON: 10_000_000} == _sums(
        HeldUpSums().enter(edges, _samples(samples=20))
    )


def test_what_has_not_changed_is_the_same_object() -> None:
    """
    So that whoever adds it up has nothing to do.
    """
    sums, edge, samples = HeldUpSums(), _edge(10), _samples(HeldBy(CRUNCHING, 10, _GC, 10))
    first = sums.enter((edge,), samples)

    assert first is sums.enter((edge,), samples)
    assert first is not sums.enter((replace(edge, lost=Tally(11, 1)),), samples)


def test_stacks_that_are_made_anew_each_time_take_no_more_memory() -> None:
    """
    What is open still is told by a stack of its own each time that it is asked for.
    """
    sums, edge = HeldUpSums(), _edge(10)
    known, made, asked = (replace(CRUNCHING) for _ in range(3))
    for number, each in enumerate((known, made, replace(CRUNCHING)), 1):
        sums.enter((edge,), _samples(HeldBy(each, number, _GC, number)))
    del each

    assert sys.getrefcount(asked) == sys.getrefcount(made) < sys.getrefcount(known)
