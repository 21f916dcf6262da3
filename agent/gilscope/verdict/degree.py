"""How bad it is, by the thresholds of the alerts."""

from enum import IntEnum
from typing import Final

__all__ = [
    "CONVOYS_A_SECOND",
    "HOG_SHARE",
    "LOST_RATIO",
    "MILD_THREADS",
    "SEVERE_THREADS",
    "Degree",
    "degree_of_waiting",
]


class Degree(IntEnum):
    """Of contention."""

    NONE = 0
    """Nobody would notice."""
    MILD = 1
    """It costs something, and raises no alert."""
    SEVERE = 2
    """If it stays like that, it raises an alert."""


SEVERE_THREADS: Final = 0.25
"""That wait for the GIL at any moment (GilscopeGilContention)."""
LOST_RATIO: Final = 0.5
"""Of the time in which threads wait for the GIL or have it (GilscopeGilContention)."""
CONVOYS_A_SECOND: Final = 10.0
"""Waits of a whole switch interval (GilscopeGilConvoy)."""
HOG_SHARE: Final = 0.2
"""Of the time, for which a drop request is unanswered (GilscopeGilHog)."""
MILD_THREADS: Final = 0.02
"""Below this, what waits cost is less than what measurements of a service scatter by."""


def degree_of_waiting(waiting: float, held: float | None) -> Degree:
    """Return how bad it is that *waiting* threads wait at any moment, on average.

    *held* is the share of the time for which the GIL was held, where it is known.
    """
    if waiting < MILD_THREADS:
        return Degree.NONE
    # Unknown is nearly always held, where threads wait.
    is_lost = waiting / (waiting + (1.0 if held is None else held)) > LOST_RATIO
    return Degree.SEVERE if waiting > SEVERE_THREADS and is_lost else Degree.MILD
