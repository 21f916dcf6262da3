"""What transactions have lost as samples of a profile.

A try that was aborted stands at its thread, a pause at what it was for, and what made a transaction
inevitable at its reason: none of them has a stack.
"""

from collections.abc import Iterator
from typing import Final

import gilscope
from gilscope.model.transactions import StmRecording
from gilscope.reports.gil.profiles.profile import Location, Profile, ValueType
from gilscope.reports.transactions.losses import losses
from gilscope.reports.transactions.words import lost_words
from gilscope.text.printable import printable
from gilscope.text.units import seconds

__all__ = ["ABORT_COST", "STM_TYPES", "add_transactions", "comments_on"]

ABORTS = ValueType("stm_aborts", "count")
ABORT_COST = ValueType("stm_abort_cost", "nanoseconds")
PAUSES = ValueType("stm_pauses", "count")
PAUSE = ValueType("stm_pause", "nanoseconds")
INEVITABLE = ValueType("stm_inevitable", "count")
STM_TYPES = (ABORTS, ABORT_COST, PAUSES, PAUSE, INEVITABLE)

_TYPES: Final = {"aborts": (ABORTS, ABORT_COST), "pauses": (PAUSES, PAUSE)}


def add_transactions(profile: Profile, recording: StmRecording) -> None:
    """Add all that *recording* has lost; what is not seen has no sample."""
    process, totals = recording.observation.process, recording.observation.totals
    program = printable(process.name)
    labels = {"process": program, "pid": str(process.pid)}

    def stack(name: str, root: str) -> tuple[Location, ...]:
        return Location(program, printable(name)), Location(program, root)

    for loss in losses(totals):
        count, cost = _TYPES[loss.root]
        profile.add(stack(loss.name, loss.root), labels, {count: loss.count, cost: loss.ns})
    for reason, times in totals.inevitable.items():
        profile.add(stack(reason, "made inevitable"), labels, {INEVITABLE: times})


def comments_on(recording: StmRecording) -> Iterator[str]:
    """Yield what no sample of *recording* says."""
    seen = recording.observation
    whose = f"{printable(seen.process.name)}, pid {seen.process.pid}"
    yield f"gilscope {gilscope.__version__}: {whose}: transactions, {_of(recording)}"
    if seen.invalid:
        yield f"{whose}: not seen to the end: {printable(seen.invalid)}"
    for reason, count in seen.totals.lost_events.items():
        yield f"{whose}: not counted in full: {lost_words(reason, count)}"


def _of(recording: StmRecording) -> str:
    observed, passed = recording.observation.observed_ns, recording.duration_ns
    return f"{seconds(observed)} of {seconds(passed)} observed"
