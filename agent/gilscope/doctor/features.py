"""Says what gilscope does on this kernel in which way, and where a newer one would do better.

All of it follows from facts about the machine and needs no right, so that it can be told before
anything is granted.
"""

import errno
from collections.abc import Mapping

from gilscope.doctor.machine import Machine
from gilscope.doctor.syscall_trials import Attempt
from gilscope.model.diagnosis import Check, Status, TrapCost

__all__ = ["judge_features", "judge_trap_cost"]

_RING_SINCE = (5, 8)
_LINKS = "links that see all threads"
_LINKS_SINCE = (6, 10)
"""As `kernel_features` has it, which decides."""

# Since Linux commit 94dacdbd5d2d ("bpf: Tighten the requirements for preallocated hash maps")
# (in v5.7), and until 34dd3bad1a6f ("bpf: Relax the requirement to use preallocated hash maps in
# tracing progs") (in v6.1), a kernel warns of tables that grow, and one with PREEMPT_RT refuses.
_GROWING_IS_FINE_SINCE = (6, 1)

_BATCHES_SINCE = (5, 6)
_MISSES_SINCE = (5, 12)
_US_WITHOUT_FRACTION = 10
_NS_PER_US = 1_000


def judge_features(machine: Machine, attempts: Mapping[Attempt, int]) -> tuple[Check, ...]:
    """Return a check for each feature: `WARNING` where it works in a costlier or poorer way."""
    return (
        *_modes(machine, has_ring=_has_ring(machine, attempts)),
        _probes(machine),
        _tables(machine),
        _reading(machine),
        _missed_runs(machine),
    )


def judge_trap_cost(cost: TrapCost | None) -> Check:
    """Return what a trap costs here; None: the real probes could not be tried."""
    name = "trap_cost"
    if cost is None:
        return Check(name, Status.UNKNOWN, "not measured: see probes")
    words = (
        f"{_us(cost.full_ns)} where the GIL is acquired or released, "
        f"{_us(cost.contention_ns)} at a wait, "
        f"{_us(cost.stepped_ns)} where it has to be single-stepped"
    )
    if cost.is_measured:
        return Check(name, Status.OK, f"{words}; measured")
    found = f"could not be measured here; taken for {words}, to keep a budget in any case"
    return Check(name, Status.WARNING, found)


def _modes(machine: Machine, *, has_ring: bool) -> tuple[Check, Check]:
    if not has_ring:
        why = (
            "not on this kernel: the probes wake gilscope through a ring buffer, "
            f"{_because(machine, 'these', _RING_SINCE)}"
        )
        return Check("waits", Status.MISSING, why), Check("holds", Status.MISSING, why)
    waits = Check("waits", Status.OK, "in all modes, with their causes")
    if machine.uses_links:
        found = "full and auto mode; a probe brings the number of its process along"
        return waits, Check("holds", Status.OK, found)
    found = (
        "full and auto mode, but each trap looks its process up, and windows of auto mode are "
        f"rarer, {_because(machine, _LINKS, _LINKS_SINCE)}"
    )
    return waits, Check("holds", Status.WARNING, found)


def _probes(machine: Machine) -> Check:
    if machine.uses_links:
        return Check("placing", Status.OK, "probes as links: all sites of a kind at once")
    found = (
        f"probes one by one, as perf events, {_because(machine, _LINKS, _LINKS_SINCE)}: each takes "
        "about 0.2 s to take out, and the fix for CVE-2025-38466 leaves them to CAP_SYS_ADMIN"
    )
    return Check("placing", Status.WARNING, found)


def _tables(machine: Machine) -> Check:
    if machine.version >= _GROWING_IS_FINE_SINCE:
        return Check("tables", Status.OK, "take memory as they fill")
    why = _because(machine, "tables that may grow", _GROWING_IS_FINE_SINCE)
    return Check("tables", Status.WARNING, f"take all their memory, some 60 MB, at once, {why}")


def _reading(machine: Machine) -> Check:
    if machine.version >= _BATCHES_SINCE:
        return Check("reading", Status.OK, "tables in batches of entries")
    why = _because(machine, "look-ups in batches", _BATCHES_SINCE)
    return Check("reading", Status.WARNING, f"tables entry by entry, which is costlier, {why}")


def _missed_runs(machine: Machine) -> Check:
    name = "missed_runs"
    if machine.version >= _MISSES_SINCE:
        return Check(name, Status.OK, "the kernel's count of runs that it left out is passed on")
    why = _because(machine, "that count", _MISSES_SINCE)
    return Check(name, Status.WARNING, f"no count of runs that the kernel left out, {why}")


def _has_ring(machine: Machine, attempts: Mapping[Attempt, int]) -> bool:
    # A refusal says nothing about what the kernel knows, success and EINVAL do: distributions
    # bring features to older kernels.
    number = attempts[Attempt.RING]
    if number in (0, errno.EINVAL):
        return not number
    return machine.version >= _RING_SINCE


def _because(machine: Machine, what: str, since: tuple[int, int]) -> str:
    here, there = (".".join(map(str, version)) for version in (machine.version, since))
    return f"because this kernel is {here} and {what} came with {there}"


def _us(ns: float) -> str:
    us = ns / _NS_PER_US
    return f"{us:.0f} us" if us >= _US_WITHOUT_FRACTION else f"{us:.2g} us"
