"""Tells why a thread keeps the GIL: what it does while it holds it.

All of it is read from outside, in the sampler's thread: the thread's own files in /proc, the
interpreter's flag for garbage collection, and, where the thread has not moved from one sample to
the next, a few of its instructions.

A call into C may be over before the next sample, for these are as rare as their price demands. So a
hold that is sampled once is taken for the call that kept others waiting from one sample to the
next in that place before. Of these alone it is certain: whoever runs Python code drops the lock for
others within the switch interval.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from gilscope.arch.base import SampledRegisters
from gilscope.gil.tracing.holders.gap import Gap, Seen, gap_between
from gilscope.gil.tracing.holders.native_calls import (
    Chain,
    NativeCalls,
    calls_to_python,
    evaluates_python,
)
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.model.moment.seen import SystemCall
from gilscope.naming.system_calls import call_words, descriptor_of, futex_address
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.code_places import CodePlace, CodePlaces
from gilscope.process.threads.activity import (
    ThreadActivity,
    read_activity,
    read_descriptor,
    read_schedule,
)
from gilscope.process.threads.instruction_samples import ran_ns
from gilscope.runtimes.base import Holders, HolderSample
from gilscope.values import dataclass

__all__ = ["Part", "StateReader"]

_PYTHON = HoldState(State.PYTHON)
_NO_CPU = HoldState(State.NO_CPU)
_NATIVE = HoldState(State.NATIVE)
_IS_RUNNING_S = 0.0002
_SAMPLED_S = 0.001
_NATIVE_AGAIN_S = 0.1
"""For so long what was found of a call into C is taken to be true, if it is still in flight."""
_C_LIBRARIES = ("libc.", "libc-", "ld-", "libm.", "libpthread", "linux-vdso", "[vdso]", "ld-musl")
_UNINTERRUPTIBLE = "D"
_STOPPED = {"T", "t"}
_SLEEPING = {"S", "D"}
_MOST_POSITIONS = 1024
_LEAST_PART = 2
"""Of a gap: where the kernel tells of less than a half on a CPU, the thread is examined."""


@dataclass(frozen=True, slots=True)
class Part:
    """Time that a lock was held, and in which state."""

    sample: HolderSample
    state: HoldState
    ns: int
    waiting: int
    """How many threads waited meanwhile."""


@dataclass(frozen=True, slots=True)
class _Before:
    """The last sample of a lock."""

    sample: HolderSample
    seen: Seen
    waiting: int


@dataclass(frozen=True, slots=True)
class _Doing:
    """What the holder of a lock does."""

    seen: Seen | None
    """None: no more is known of it."""
    asleep_in: HoldState | None
    """None: it does not sleep, or nothing is known."""


_UNSEEN = _Doing(None, None)


class StateReader:
    """The states of the holders of one process. One thread may use it."""

    def __init__(
        self,
        pid: int,
        holders: Holders,
        call_names: Mapping[int, str],
        stack_registers: SampledRegisters | None = None,
    ) -> None:
        """Read those of *pid*, whose system calls are numbered as in *call_names*.

        With *stack_registers* the calls that led to C code are read too, from samples of stacks.
        """
        self._pid = pid
        self._holders = holders
        self._call_names = call_names
        mappings = CodeMappings(pid)
        self._code = CodePlaces(pid, mappings)
        self._calls = NativeCalls(pid, mappings, stack_registers)
        self._before: dict[int, _Before] = {}
        """By address of the lock."""
        self._pending: dict[int, Part | None] = {}
        self._native: tuple[tuple[int, int, int], HoldState] | None = None
        self._native_until_s = 0.0
        self._native_at: dict[int, HoldState] = {}
        """Calls that kept others waiting, by position; of other holds there no instruction may be
        had."""
        self._may_sample = True

    def parts(self, cond: int, sample: HolderSample, gap_ns: int, waiting: int) -> list[Part]:
        """Return what the holder of *cond* did in the last *gap_ns*; none if nobody holds it.

        *waiting* threads wait for it. What it has done since its hold was first sampled is open
        until the next sample: see `pending`. Raises OSError where the process has gone.
        """
        doing = self._doing(cond, sample)
        if doing is None:
            return self.forget(cond)
        pending, self._pending[cond] = self._pending.get(cond), None
        before = self._before.pop(cond, None)
        seen, asleep_in = doing.seen, doing.asleep_in
        if seen is None:
            unknown = _runtimes_work(sample) or UNKNOWN_HOLD
            return [*_settled(pending), *_parts(sample, {unknown: gap_ns}, waiting)]
        self._before[cond] = _Before(sample, seen, waiting)
        if before is None or not _is_same_hold(before.sample, sample):
            state = asleep_in or _runtimes_work(sample)
            if state is None and self._is_off_cpu(cond, sample):
                state = _NO_CPU
            at_first = state or self._native_at.get(sample.position, _PYTHON)
            part = Part(sample, at_first, gap_ns, waiting)
            if state is None:
                self._pending[cond] = part
            return [*_settled(pending), *([part] if state else [])]
        is_open = (seen.cpu_ns - before.seen.cpu_ns) * _LEAST_PART < gap_ns and not asleep_in
        is_off_cpu = is_open and self._is_off_cpu(cond, sample)
        gap = gap_between(before.seen, seen, gap_ns, is_off_cpu=is_off_cpu)
        running = _runtimes_work(sample)
        if running is None and gap.running_ns and before.sample.position == sample.position:
            running = self._still_running(sample, min(waiting, before.waiting))
            if pending is not None:
                pending = replace(pending, state=running or _PYTHON)
        states = _states(gap, running or _PYTHON, asleep_in or UNKNOWN_HOLD)
        return [*_settled(pending), *_parts(sample, states, waiting)]

    def pending(self, cond: int) -> Part | None:
        """Return what is open of *cond* still, and as what it counts until it is decided."""
        return self._pending.get(cond)

    def forget(self, cond: int) -> list[Part]:
        """Take note that nobody holds *cond*; return what was open."""
        self._before.pop(cond, None)
        return _settled(self._pending.pop(cond, None))

    def _doing(self, cond: int, sample: HolderSample) -> _Doing | None:
        """Return what the holder of *cond* does.

        None: it waits for the lock itself, which names it until the next one runs; nobody holds it.
        """
        if sample.tid is None:
            return _UNSEEN
        try:
            activity = read_activity(self._pid, sample.tid)
        except (OSError, ValueError):
            return _UNSEEN  # the thread has just ended
        if activity.schedule is None or activity.state in _STOPPED:
            return _UNSEEN
        asleep_in = None
        if activity.state in _SLEEPING and self._slept_on(cond, sample, activity):
            if self._waits_for(cond, activity):
                return None
            asleep_in = self._asleep_in(activity)
        cpu_ns, queued_ns, _ = activity.schedule
        return _Doing(Seen(asleep_in is not None, cpu_ns, queued_ns), asleep_in)

    def _slept_on(self, cond: int, sample: HolderSample, activity: ThreadActivity) -> bool:
        """Return whether the thread has slept, holding *cond*, ever since *activity* was read.

        It may have released the GIL just before, to sleep as everybody does.
        """
        if not self._holders.is_held_by(cond, sample) or sample.tid is None:
            return False
        try:
            schedule = read_schedule(self._pid, sample.tid)
        except OSError:
            return False
        return schedule is not None and activity.schedule == schedule

    def _waits_for(self, cond: int, activity: ThreadActivity) -> bool:
        call = self._call(activity)
        address = None if call is None else futex_address(call)
        return address is not None and self._holders.is_part_of(cond, address)

    def _call(self, activity: ThreadActivity) -> SystemCall | None:
        if activity.call is None:
            return None
        number, arguments = activity.call
        return SystemCall(self._call_names.get(number, f"call {number}"), arguments)

    def _asleep_in(self, activity: ThreadActivity) -> HoldState:
        call = self._call(activity)
        if call is None:
            is_fault = activity.state == _UNINTERRUPTIBLE
            return HoldState(State.PAGE_FAULT) if is_fault else UNKNOWN_HOLD
        descriptor = descriptor_of(call)
        file = None if descriptor is None else read_descriptor(self._pid, descriptor)
        return HoldState(State.SYSCALL, call_words(call, file))

    def _is_off_cpu(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the holder, which could run, has no CPU now."""
        if sample.tid is None or not self._may_sample:
            return False
        try:
            # Who does not hold it any more has run meanwhile.
            return not ran_ns(sample.tid, _IS_RUNNING_S) and self._holders.is_held_by(cond, sample)
        except OSError as error:
            self._note(error)
            return False

    def _chains(self, sample: HolderSample) -> tuple[Chain, ...]:
        if sample.tid is None or not self._may_sample:
            return ()
        try:
            return self._calls.sampled(sample.tid, _SAMPLED_S)
        except OSError as error:
            self._note(error)
            return ()

    def _note(self, error: OSError) -> None:
        # Otherwise the thread has just ended, or there are too many events.
        if isinstance(error, PermissionError):
            self._may_sample = False

    def _still_running(self, sample: HolderSample, waiting: int) -> HoldState | None:
        """Return the state of a thread that runs, and has not moved in its Python code.

        None where it runs that: a loop is often found in the same place of it. *waiting* threads
        have waited all that time.
        """
        if not sample.tells_native:
            return None
        key = (sample.thread, sample.switch_number, sample.position)
        now_s = time.monotonic()
        if self._native is not None and self._native[0] == key and now_s < self._native_until_s:
            return self._native[1]
        chains = self._chains(sample)
        places = [self._code.place(chain[0]) for chain in chains]
        if any(evaluates_python(place) for place in places):
            self._native_at.pop(sample.position, None)
            return None
        if not places:
            # Whoever runs Python code would have released it to those that wait.
            is_native = waiting and not self._may_sample
            return self._native_at.get(sample.position, _NATIVE if is_native else None)
        calls = calls_to_python(
            [[self._code.place(address) for address in chain[1:]] for chain in chains]
        )
        state = HoldState(State.NATIVE, _most_of(places), calls)
        self._native, self._native_until_s = (key, state), now_s + _NATIVE_AGAIN_S
        if waiting:
            if len(self._native_at) >= _MOST_POSITIONS:
                self._native_at.clear()
            self._native_at[sample.position] = state
        return state


def _is_same_hold(before: HolderSample, now: HolderSample) -> bool:
    return (before.thread, before.switch_number) == (now.thread, now.switch_number)


def _runtimes_work(sample: HolderSample) -> HoldState | None:
    """Return what the runtime does for the code that it runs; None: it runs it."""
    if sample.is_compiling:
        return HoldState(State.JIT)
    if not sample.is_collecting:
        return None
    generation = "" if sample.generation is None else f"generation {sample.generation}"
    return HoldState(State.GC, generation)


def _settled(pending: Part | None) -> list[Part]:
    return [] if pending is None else [pending]


def _parts(sample: HolderSample, states: Mapping[HoldState, int], waiting: int) -> list[Part]:
    return [Part(sample, state, ns, waiting) for state, ns in states.items()]


def _states(gap: Gap, running: HoldState, asleep_in: HoldState) -> dict[HoldState, int]:
    parts = Counter({running: gap.running_ns})
    parts[asleep_in] += gap.asleep_ns
    parts[_NO_CPU] += gap.no_cpu_ns
    return {state: ns for state, ns in parts.items() if ns}


def _most_of(places: list[CodePlace | None]) -> str:
    """Return module and function of most of *places*, of the C library's if there are no others."""
    known = [place for place in places if place is not None]
    if not known:
        return "code made as it runs"
    own = [place for place in known if not place.module.startswith(_C_LIBRARIES)] or known
    ((module, _),) = Counter(place.module for place in own).most_common(1)
    functions = Counter(each.function for each in own if each.module == module and each.function)
    return " ".join([module, *(name for name, _ in functions.most_common(1))])
