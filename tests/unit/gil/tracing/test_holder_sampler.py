"""Samples of the holders, of a process that is made up."""

import threading
from random import Random

from gilscope.gil.tracing.holder_sampler import HolderSampler
from gilscope.model.stack import Stack
from support.commands.gilscope import eventually
from support.recordings.gil import CRUNCHING, SERVING


class _Holders:
    """Locks of which the first is held by turns, and the second never."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = threading.Event()

    def stack(self, cond: int) -> Stack | None:
        """Return who holds it."""
        if self.fails.is_set():
            raise OSError("it has ended")
        self.asked += 1
        if cond == 2:
            return None
        return CRUNCHING if self.asked % 4 == 1 else SERVING


def test_held_time_is_a_part_of_the_time_and_stays() -> None:
    """
    By whom it was held, each sample for the time since the last one; an end leaves what was seen.
    """
    holders = _Holders()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, holders, lambda: [1, 2], lambda stack: stack)
        eventually(lambda: holders.asked >= 12)
        holders.fails.set()
        figures = sampler.figures(7)
    finally:
        sampler.close()

    assert figures is not None
    assert figures.samples >= 5
    assert {CRUNCHING, SERVING} == {held.holder for held in figures.holders}
    assert figures.sampled_ns == sum(held.held_ns for held in figures.holders)
    assert sampler.cpu_ns > 0


def test_what_is_dropped_is_forgotten() -> None:
    """
    And what was never there is not known.
    """
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, _Holders(), lambda: [1], lambda stack: stack)
        sampler.drop(7)

        assert sampler.figures(7) is None
        assert sampler.figures(8) is None
    finally:
        sampler.close()
