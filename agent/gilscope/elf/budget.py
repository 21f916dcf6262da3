"""Bounds the work and the memory that one ELF file may cost, whoever has made it."""

from typing import Final

from gilscope.elf.structs import ElfError

__all__ = ["MOST_KEPT_BYTES", "MOST_STEPS", "ElfBudget"]

MOST_STEPS: Final = 5_000_000
"""Steps for one file: entries of tables, symbols, matches and instructions that are read.

A step takes up to a microsecond. A CPython of 9 MB, with everything in it, needs 850,000.
"""
MOST_KEPT_BYTES: Final = 48 << 20
"""Bytes, by estimate, of what is kept of one file, beyond the file itself."""

_BYTES_A_STEP: Final = 64
"""Bytes that are searched for patterns in the time of a step."""


class ElfBudget:
    """What is left for one file; raises ElfError where it is used up."""

    def __init__(self) -> None:
        self._steps = MOST_STEPS
        self._kept = MOST_KEPT_BYTES

    @property
    def steps(self) -> int:
        """Steps that were made."""
        return MOST_STEPS - self._steps

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept, by estimate."""
        return MOST_KEPT_BYTES - self._kept

    def spend(self, steps: int, kept_bytes: int = 0) -> None:
        """Count work that is about to be done, and what will be kept of it."""
        self._steps -= steps
        self._kept -= kept_bytes
        if self._steps < 0 or self._kept < 0:
            raise ElfError(
                "too complex: to find the GIL's code would take more than "
                f"{MOST_STEPS} steps or {MOST_KEPT_BYTES >> 20} MB"
            )

    def search(self, size: int) -> None:
        """Count a search through *size* bytes."""
        self.spend(size // _BYTES_A_STEP)
