"""Numbers of the records that a traced process has in the probes' arrays."""

from collections import deque

__all__ = ["SlotPool"]


class SlotPool:
    """Numbers from 0 up to a limit, each for one owner at a time."""

    def __init__(self, count: int) -> None:
        self._free = deque(range(count))

    def take(self) -> int | None:
        """Return a number that nobody has, or None where all are given out."""
        return self._free.popleft() if self._free else None

    def give_back(self, slot: int) -> None:
        """Let *slot* be taken again, later than all that are free now."""
        # So a probe that has just been taken out, and fires once more, meets nobody else's record.
        self._free.append(slot)
