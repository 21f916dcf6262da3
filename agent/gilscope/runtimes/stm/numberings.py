"""Which events the numbers of an RPython program stand for: they have changed several times.

A program does not say which numbering is its own; what it exports tells.
"""

from collections.abc import Callable
from enum import Enum

__all__ = ["BEGINS", "Numbering", "numbering_of"]

BEGINS = ("_stm_start_transaction", "stm_start_transaction")
"""What begins a transaction: in C8 from June 2015 on, and before that and in C7, where the first
name is that of an inner function that is called at each try."""

_VALIDATE = "stm_validate"
"""Exported by every C8, and by no C7."""
_LATEST = "stm_hashtable_iter"
"""Came with the last numbering."""

_SURE = ("START", "COMMIT", "ABORT")


class Numbering(Enum):
    """A table of events; the value is what each number stands for, "" for what is not followed."""

    C7 = (
        *_SURE,
        *("CONFLICT", "CONFLICT", "CONFLICT", ""),
        *("WAIT_FREE_SEGMENT", "WAIT_SYNC_PAUSE", "WAIT_CONTENTION", "WAIT_DONE"),
        *("GC_MINOR_START", "GC_MINOR_DONE", "GC_MAJOR_START", "GC_MAJOR_DONE"),
    )
    """Of PyPy-STM 2.4 and 2.5, October 2014 to July 2015."""
    E16 = (
        *_SURE,
        *("DETACH", "REATTACH", "", "CONFLICT"),
        *("WAIT_FREE_SEGMENT", "WAIT_SYNCING", "WAIT_SYNC_PAUSE", "WAIT_OTHER_INEVITABLE"),
        *("WAIT_DONE", "GC_MINOR_START", "GC_MINOR_DONE", "GC_MAJOR_START", "GC_MAJOR_DONE"),
    )
    """Of the last PyPy-STM, from November 2015 on."""
    SURE = _SURE
    """What all tables have in common: the program's own is not known."""

    @property
    def waits(self) -> tuple[str, ...]:
        """The kinds of waits that it has events for."""
        return tuple(
            event.removeprefix("WAIT_")
            for event in self.value
            if event.startswith("WAIT_") and event != "WAIT_DONE"
        )


def numbering_of(begin: str, has: Callable[[str], bool]) -> Numbering:
    """Return the numbering of a program that begins transactions by *begin*, one of `BEGINS`.

    *has* tells whether the program has a function of some name.
    """
    if begin != BEGINS[0]:
        return Numbering.SURE if has(_VALIDATE) else Numbering.C7
    return Numbering.E16 if has(_LATEST) else Numbering.SURE
