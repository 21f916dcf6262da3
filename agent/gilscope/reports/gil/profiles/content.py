"""The waits of a recording as samples of a profile.

One profile with four values a sample. A wait is there twice: at the stack that waited, and at the
one that it waited for, with the same nanoseconds under another type. Transactions have values of
their own.
"""

from collections.abc import Iterator, Mapping, Sequence

import gilscope
from gilscope.model.gil import Recording
from gilscope.model.locks import LockRecording
from gilscope.model.moment.hold_state import HoldState
from gilscope.model.stack import Stack
from gilscope.model.transactions import StmRecording
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames, role_of
from gilscope.reports.gil.flame_levels import levels
from gilscope.reports.gil.profiles.profile import Location, Profile, ValueType, location
from gilscope.reports.gil.words import lost_words, process_words
from gilscope.reports.locks.profile import LOCK_TYPES, LOCK_WAIT, add_locks, comments_on_locks
from gilscope.reports.transactions.profile import (
    ABORT_COST,
    STM_TYPES,
    add_transactions,
    comments_on,
)
from gilscope.text.printable import printable
from gilscope.text.units import counted, seconds

__all__ = ["HELD_UP", "HOLD", "WAIT", "WAITS", "profile_of"]

WAITS = ValueType("gil_waits", "count")
WAIT = ValueType("gil_wait", "nanoseconds")
HELD_UP = ValueType("gil_held_up", "nanoseconds")
HOLD = ValueType("gil_hold", "nanoseconds")


_GIL_TYPES = (WAITS, WAIT, HELD_UP, HOLD)


def profile_of(
    *recordings: Recording,
    transactions: Sequence[StmRecording] = (),
    locks: Sequence[LockRecording] = (),
) -> Profile:
    """Return the profile of all of them, with the types of what was recorded.

    Labels say the process.
    """
    has_gil = bool(recordings) or not (transactions or locks)
    every: list[Recording | StmRecording | LockRecording] = [*recordings, *transactions, *locks]
    types = (
        *(_GIL_TYPES if has_gil else ()),
        *(STM_TYPES if transactions else ()),
        *(LOCK_TYPES if locks else ()),
    )
    default = HELD_UP if has_gil else ABORT_COST if transactions else LOCK_WAIT
    profile = Profile(
        types,
        default=default,
        began_ns=min((_began_ns(each) for each in recordings), default=0),
        duration_ns=max((each.duration_ns for each in every), default=0),
        # There without samples too: stores know the types of a profile by it.
        period_type=HOLD if has_gil else default,
        period=_period_ns(recordings),
        comments=[
            *(comment for each in recordings for comment in _comments(each)),
            *(comment for each in transactions for comment in comments_on(each)),
            *(comment for each in locks for comment in comments_on_locks(each)),
        ],
    )
    for recording in recordings:
        _add(profile, recording)
    for each in transactions:
        add_transactions(profile, each)
    for of_locks in locks:
        add_locks(profile, of_locks)
    return profile


def _began_ns(recording: Recording) -> int:
    return max(0, recording.ended_ns - recording.duration_ns)


def _period_ns(recordings: tuple[Recording, ...]) -> int:
    """Return how much time one sample of a holder stands for, on average; 0: there are none."""
    known = [each.observation.totals.holder_samples for each in recordings]
    samples = sum(each.samples for each in known if each is not None)
    sampled_ns = sum(each.sampled_ns for each in known if each is not None)
    return sampled_ns // samples if samples else 0


def _comments(recording: Recording) -> Iterator[str]:
    """Yield what no sample says."""
    seen, whose = recording.observation, process_words(recording)
    outcome = (
        f"nothing is reported, because {printable(seen.invalid)}"
        if seen.invalid
        else f"{seconds(recording.duration_ns)} in {recording.mode} mode"
    )
    yield f"gilscope {gilscope.__version__}: {whose}: {outcome}"
    for reason, count in seen.totals.lost_events.items():
        yield f"{whose}: not counted in full: {lost_words(reason, count)}"
    samples = seen.totals.holder_samples
    if samples is not None:
        yield f"{whose}: gil_hold is estimated from {counted(samples.samples, 'sample')}"


def _add(profile: Profile, recording: Recording) -> None:
    totals, stacks = recording.observation.totals, _Stacks(recording)
    for edge in totals.edges:
        kind = {"kind": edge.kind.value}
        ns = edge.lost.ns
        waiter, holder = stacks.place(edge.waiter), stacks.place(edge.holder)
        profile.add(
            stacks.locations(edge.waiter),
            {**stacks.labels(edge.waiter), **kind, "holder": holder},
            {WAITS: edge.lost.count, WAIT: ns},
        )
        profile.add(
            stacks.locations(edge.holder),
            {**stacks.labels(edge.holder), **kind, "waiter": waiter},
            {HELD_UP: ns},
        )
    if totals.holder_samples is not None:
        for held in totals.holder_samples.holders:
            profile.add(
                (*stacks.native(held.state), *stacks.locations(held.holder)),
                {**stacks.labels(held.holder), "state": held.state.state.value},
                {HOLD: held.held_ns},
            )


class _Stacks:
    """The stacks of one process, each made into locations and labels once."""

    def __init__(self, recording: Recording) -> None:
        self._application = recording.application
        process = recording.observation.process
        self._program = printable(process.name)
        self._process = {"process": self._program, "pid": str(process.pid)}
        self._names = SiteNames()
        self._locations: dict[Stack, tuple[Location, ...]] = {}
        self._places: dict[Stack, str] = {}
        self._roles: dict[Stack, str] = {}

    def locations(self, stack: Stack) -> tuple[Location, ...]:
        """Return what *stack* is made of, innermost first."""
        if stack not in self._locations:
            self._locations[stack] = tuple(
                location(self._program, level) for level in reversed(levels(stack))
            )
        return self._locations[stack]

    def native(self, state: HoldState) -> tuple[Location, ...]:
        """Return the functions of C that the holder was in, where its calls are known."""
        called = (state.detail, *state.calls) if state.calls else ()
        parts = (printable(call).partition(" ") for call in called)
        return tuple(Location(self._program, name or file, file) for file, _, name in parts)

    def place(self, stack: Stack) -> str:
        """Return where in the application's code *stack* stands."""
        if stack not in self._places:
            frame = application_frame(stack, self._application)
            self._places[stack] = printable(self._names.owner(frame, stack))
        return self._places[stack]

    def labels(self, stack: Stack) -> Mapping[str, str]:
        """Return whose *stack* is: process, and role of the thread."""
        if stack not in self._roles:
            self._roles[stack] = printable(role_of(stack))
        return {**self._process, "role": self._roles[stack]}
