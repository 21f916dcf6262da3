"""What one trap costs, as a value."""

from typing import Final

from gilscope.values import dataclass

__all__ = ["ASSUMED", "TrapCosts"]


@dataclass(frozen=True, slots=True)
class TrapCosts:
    """What the target pays for one trap, the BPF program included."""

    full_ns: float
    """At an acquire or release site whose call the kernel emulates."""
    stepped_ns: float
    """At one that calls through a slot, which the kernel single-steps."""
    contention_ns: float
    """On the contended path: the mean of the wait's begin and its return."""
    inside_hold_ns: int
    """How long an empty hold seems to last: the part of the traps that a hold's duration has in it.

    It is that of emulated calls.
    """
    inside_stepped_hold_ns: int
    """The same where the acquire site is single-stepped, which comes after its program."""
    sharing_ns: float
    """For each other process that is probed at the same place of the same file: the kernel asks all
    of them whether the trap is theirs."""
    is_measured: bool
    """False: it could not be measured here, and the numbers are assumed ones."""


ASSUMED: Final = TrapCosts(
    full_ns=2_000.0,
    stepped_ns=40_000.0,
    contention_ns=3_000.0,
    inside_hold_ns=0,
    inside_stepped_hold_ns=0,
    sharing_ns=200.0,
    is_measured=False,
)
"""Rather more than was ever seen, so that a budget is kept: virtual machines took 0.6 to 1.2 µs for
an emulated trap and 19 to 39 µs for a stepped one, and the programs come on top.

From a hold nothing is taken away that may have been in it.
"""
