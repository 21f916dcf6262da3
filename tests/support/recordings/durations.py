"""Histograms of durations that a test names."""

from gilscope.model.histogram import SLOTS, Histogram, slot_of

__all__ = ["histogram"]


def histogram(*values_ns: int) -> Histogram:
    """Return a histogram of the given values."""
    slots = [0] * SLOTS
    for ns in values_ns:
        slots[slot_of(ns)] += 1
    return Histogram(tuple(slots), sum(values_ns))
