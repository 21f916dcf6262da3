"""Puts together what the kernel, the memory and the probes tell of the threads of a process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from gilscope.model.moment.dump import Awaited, DumpedGil, DumpedThread
from gilscope.model.moment.seen import LockNow, NativeLock, ServedRequest, SystemCall, ThreadStack
from gilscope.model.stack import Stack
from gilscope.naming.places import role_of
from gilscope.naming.roles import MAIN_THREAD
from gilscope.naming.system_calls import call_words, descriptor_of, futex_address
from gilscope.process.threads.activity import ThreadActivity
from gilscope.text.printable import label
from gilscope.values import dataclass

__all__ = ["Known", "dumped_gils", "dumped_threads"]

_NO_PYTHON = "no Python code"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a process besides what its threads do."""

    pid: int
    call_names: Mapping[int, str]
    """Of its processor's system calls, by number."""
    roles: Mapping[int, str] = field(default_factory=dict)
    """Of threads by tid, where they have been read."""
    waiting_ns: Mapping[int, int] = field(default_factory=dict)
    """By tid, for how long threads have waited for the GIL so far, as a tracer knows."""
    request_of: Callable[[int], ServedRequest | None] = lambda _: None
    """Which request a thread serves, by its descriptor."""
    file_of: Callable[[int], str | None] = lambda _: None
    """What a descriptor leads to."""
    owner_of: Callable[[int], int | None] = lambda _: None
    """Which thread owns the mutex at an address."""


def dumped_threads(
    known: Known,
    activities: Mapping[int, ThreadActivity],
    stacks: Sequence[ThreadStack],
    locks: Sequence[LockNow],
) -> tuple[DumpedThread, ...]:
    """Return the threads of *activities*, by number."""
    stacks_of: dict[int, list[ThreadStack]] = {}
    for each in stacks:
        stacks_of.setdefault(each.tid, []).append(each)
    return tuple(
        _thread(tid, activity, known, tuple(stacks_of.get(tid, ())), locks)
        for tid, activity in sorted(activities.items())
    )


def dumped_gils(
    locks: Sequence[LockNow], threads: Sequence[DumpedThread], held_ns: Mapping[int, int]
) -> tuple[DumpedGil, ...]:
    """Return the GILs with those of *threads* that wait for them.

    *held_ns* says by address for how long each has been held at the least, where that is known.
    """
    return tuple(
        DumpedGil(
            lock.gil,
            lock.is_held,
            _holder_of(lock, threads),
            tuple(each.tid for each in threads if each.gil_cond == lock.gil.cond),
            held_ns.get(lock.gil.cond) if lock.is_held else None,
        )
        for lock in locks
    )


def _holder_of(lock: LockNow, threads: Sequence[DumpedThread]) -> int | None:
    # Where it waits by now, the lock was read before it had changed hands.
    has_changed = any(
        each.tid == lock.holder_tid and each.gil_cond == lock.gil.cond for each in threads
    )
    return None if has_changed else lock.holder_tid


def _thread(
    tid: int,
    activity: ThreadActivity,
    known: Known,
    stacks: tuple[ThreadStack, ...],
    locks: Sequence[LockNow],
) -> DumpedThread:
    call = _call(activity, known.call_names)
    address = None if call is None else futex_address(call)
    gil = next((each for each in locks if address and each.first <= address < each.last), None)
    lock, awaited, words = None, None, ""
    if gil is not None:
        words, awaited = "waits for the GIL", Awaited.GIL
    elif call is not None:
        descriptor = descriptor_of(call)
        words = call_words(call, None if descriptor is None else known.file_of(descriptor))
        if address is not None:
            lock, awaited = NativeLock(address, known.owner_of(address)), Awaited.LOCK
    cpu_ns, delay_ns, slices = activity.schedule or (None, None, None)
    return DumpedThread(
        tid=tid,
        name=label(activity.name),
        role=known.roles.get(tid) or _role(tid == known.pid, [each.stack for each in stacks]),
        state=activity.state,
        call=call,
        call_words=words,
        awaited=awaited,
        gil_cond=None if gil is None else gil.gil.cond,
        lock=lock,
        cpu_ns=cpu_ns,
        run_delay_ns=delay_ns,
        slices=slices,
        stacks=stacks,
        waiting_ns=known.waiting_ns.get(tid),
        request=_request(known, stacks),
    )


def _request(known: Known, stacks: Sequence[ThreadStack]) -> ServedRequest | None:
    descriptor = next((each.descriptor for each in stacks if each.descriptor), 0)
    return known.request_of(descriptor) if descriptor else None


def _call(activity: ThreadActivity, names: Mapping[int, str]) -> SystemCall | None:
    if activity.call is None or not activity.is_in_call:
        return None
    number, arguments = activity.call
    return SystemCall(names.get(number, f"call {number}"), arguments)


def _role(is_main_thread: bool, stacks: Sequence[Stack]) -> str:  # noqa: FBT001 - of one caller
    if is_main_thread:
        return MAIN_THREAD
    return next((role_of(stack) for stack in stacks if stack.frames), _NO_PYTHON)
