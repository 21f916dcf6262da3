"""How often windows open, in all processes whose windows one policy opens."""

from typing import Final

__all__ = ["Pace"]

_S: Final = 1_000_000_000

_PAUSE_NS: Final = 4 * _S
_EACH_NS: Final = 600_000_000
_LONGEST_NS: Final = 8 * _S
"""Later, much of what a bucket has got would be too old to be spent."""


class Pace:
    """Changing the probes costs the agent CPU time, so that it must not happen too often.

    A window and its end take about half a millisecond. From seven processes on each waits longer
    for its next one, so that there are five in three seconds; from 14 on it waits as long as it
    may. Of what the budget allows then less is spent: a fifth where windows are costly.
    """

    def __init__(self) -> None:
        """Begin with no process."""
        self.processes = 0
        """How many have windows now and then, and not all the time."""

    @property
    def pause_ns(self) -> int:
        """From the end of a window to the next opportunity in the same process, on average."""
        return min(max(_PAUSE_NS, self.processes * _EACH_NS), _LONGEST_NS)
