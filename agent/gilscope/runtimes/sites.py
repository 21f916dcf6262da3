"""What is found of a Python before it is traced: the GIL code of its file, and its threads."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from gilscope.values import dataclass

__all__ = ["CallerRule", "LockForm", "PausePoint", "Site", "Sites"]


class LockForm(Enum):
    """What a lock is made of, which decides what its sites tell."""

    CONDITION = "condition variable"
    """Threads wait for `cond` for one switch interval at a time, and ask for the lock."""
    TURNS = "turns"
    """Threads queue for one mutex; the first of the queue looks again and again whether the lock,
    a word in memory, is free, and takes it then."""
    SEMAPHORE = "semaphore"
    """Threads wait inside libc's `sem_wait`, and ask nobody."""


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction in an ELF file on which a probe may be placed."""

    vaddr: int
    """Virtual address as the file states it, before any load bias."""
    offset: int
    """Offset of the instruction's first byte in the file: what the kernel wants."""


@dataclass(frozen=True, slots=True)
class PausePoint:
    """A call that puts a thread to sleep, and the first good place to probe after it returns."""

    call: Site
    """The ``call`` instruction itself: its arguments are in the argument registers."""
    after: Site
    """Reached on every return of the call, with the call's result still in eax.

    The conditional jump behind ``cmp eax, imm8`` or ``test eax, eax`` where there is one, because
    the kernel emulates a jump and has to single-step anything else; otherwise the instruction that
    follows the call.
    """


@dataclass(frozen=True, slots=True)
class CallerRule:
    """How to step from a program counter inside the GIL code to the caller's.

    The probe uses these to tell a thread that was preempted by the evaluation loop from one
    that came back from a blocking call. Offsets are those of the .eh_frame table.
    """

    pc: int
    """Virtual address: a wait call's own, or a return address inside the GIL's call chain."""
    made_to_yield: bool
    """True: this pc lies in the evaluation loop's own yield; no further step is needed."""
    cfa_from_frame_pointer: bool = False
    """The canonical frame address is counted from the frame pointer, not the stack pointer."""
    cfa_offset: int = 0
    """Bytes from that register to the canonical frame address."""
    saved_frame_pointer_offset: int | None = None
    """Where the caller's is saved, from the canonical frame address; None: still in place."""
    return_address_offset: int = -8
    """Where the return address is, likewise."""


@dataclass(frozen=True, slots=True)
class Sites:
    """The GIL code of one ELF file, as found without symbols.

    Addresses are exact or the resolver refused: there are no guesses in here.
    """

    build_id: str
    """Hexadecimal GNU build-id, or ``sha256:`` and a digest of the file where it has none."""
    waits: tuple[PausePoint, ...]
    """Timed waits on ``gil->cond`` inside take_gil: a contended take, or the next tick of one."""
    yields: tuple[PausePoint, ...]
    """Waits on ``gil->switch_cond`` inside drop_gil: a thread that was preempted sleeps."""
    acquires: tuple[Site, ...]
    """Calls that signal ``gil->switch_cond`` inside take_gil: the GIL was acquired."""
    releases: tuple[Site, ...]
    """Calls that may signal ``gil->cond``: the GIL was dropped, if the argument is a GIL's."""
    forced_drops: tuple[Site, ...]
    """Calls by which the evaluation loop gives the GIL away because it was asked to."""
    forced_takes: tuple[Site, ...]
    """Where it continues with the GIL, on an instruction that is cheap to probe if there is one."""
    callers: tuple[CallerRule, ...]
    """Empty where the evaluation loop's yield could not be identified."""
    checks: tuple[str, ...] = field(default=())
    """What was verified, in words, for `gilscope doctor`."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """What else the runtime has found in the file: addresses, offsets and numbers, by its names."""
    sleeps: tuple[Site, ...] = ()
    """Of a semaphore: where a thread that waits is about to sleep in the kernel. It comes there
    again whenever it was woken, and found the lock taken once more."""
