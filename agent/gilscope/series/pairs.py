"""How many pairs of waiter and holder have series of their own, unless the user says."""

from typing import Final

__all__ = ["PAIRS_OF_PROCESS", "PAIRS_OF_SERVICE"]

PAIRS_OF_PROCESS: Final = 50
PAIRS_OF_SERVICE: Final = 4
"""With all that is beside them these are at most 150 series in auto mode, of a service that has one
GIL in each process."""
