"""Samples a process at an even interval, which doubles when there are too many samples.

Not `sliding_totals`: nothing is forgotten for its age, every second snapshot goes when there are
too many. And a snapshot is a whole observation, which a report shows, not some sums.
"""

from gilscope.model.gil import GilObservation
from gilscope.text.units import NS_PER_S

__all__ = ["SnapshotSeries"]


class SnapshotSeries:
    """Snapshots a second apart at first, and twice as far apart whenever there are too many."""

    def __init__(self, began_ns: int, most: int = 120) -> None:
        """Begin at *began_ns*, and keep at most *most* snapshots."""
        self._most = most
        self._interval_ns = NS_PER_S
        self._due_ns = began_ns + self._interval_ns
        self._kept: list[GilObservation] = []

    @property
    def kept(self) -> tuple[GilObservation, ...]:
        """The snapshots, in the order of time."""
        return tuple(self._kept)

    def is_due(self, at_ns: int) -> bool:
        """Return whether it is time for a snapshot at *at_ns*."""
        return at_ns >= self._due_ns

    def add(self, seen: GilObservation) -> None:
        """Keep *seen*, unless its numbers cannot be trusted."""
        last_ns = seen.totals.at_ns
        if not seen.invalid:
            self._kept.append(seen)
        if len(self._kept) > self._most:
            self._kept = self._kept[1::2]
            self._interval_ns *= 2
            last_ns = self._kept[-1].totals.at_ns
        # Snapshots that come late are not made up for.
        self._due_ns = last_ns + self._interval_ns
