"""Whether the loops that do the work are alive, as ``/healthz`` says it."""

import time

__all__ = ["Health", "Pulse"]

_STALE_S = 10.0


class Pulse:
    """Tells whether a loop is alive."""

    def __init__(
        self, work: str = "looks after the traced processes", stale_s: float = _STALE_S
    ) -> None:
        """Begin for the loop that does *work*, which iterates within *stale_s* if it is alive."""
        self._work = work
        self._stale_s = stale_s
        self._beat_s = time.monotonic()

    def beat(self) -> None:
        """Note that the loop has finished an iteration."""
        self._beat_s = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether it finished an iteration lately."""
        return time.monotonic() - self._beat_s < self._stale_s

    @property
    def complaint(self) -> str:
        """Return what is wrong, in words; empty: nothing."""
        return "" if self.is_alive else f"the loop that {self._work} has stopped\n"


class Health:
    """Tells whether all loops that do work are alive."""

    def __init__(self, *pulses: "Pulse | Health") -> None:
        self._pulses = list(pulses)

    def watch(self, pulse: "Pulse | Health") -> None:
        """Include the loop of *pulse*."""
        self._pulses.append(pulse)

    @property
    def complaint(self) -> str:
        """Return what is wrong, a line for each loop; empty: nothing."""
        return "".join(pulse.complaint for pulse in self._pulses)
