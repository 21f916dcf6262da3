"""Finds out, in the file of a CPython 2.7, how to tell why a thread waits for the lock.

Its evaluation loop gives the lock away at every tick, and waits for it at once. All other waits
come after a call that had released it.
"""

from collections.abc import Iterable
from typing import Final

from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.instruction_starts import InstructionStarts, Place
from gilscope.elf.plt import read_linkage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import LibraryCall, scan_branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.cpython.sites.messages import (
    YIELD_MESSAGES,
    message_addresses,
    references,
)
from gilscope.runtimes.sites import CallerRule, Sites

__all__ = ["resolve_sites"]

_WAIT: Final = "sem_wait"


def resolve_sites(image: ElfImage) -> Sites:
    """Return the rules for callers of `sem_wait` in this file; it has no sites itself.

    They are empty where the evaluation loop cannot be told from other callers. Raises
    GilCodeNotFound where the file does not wait for a semaphore, ElfError where it is damaged.
    """
    try:
        starts_at_call = _waits(image)
    except ElfError as error:
        raise GilCodeNotFound(str(error)) from error
    table, groups, waits = starts_at_call
    if not waits:
        raise GilCodeNotFound("the file does not call sem_wait: its lock is not a semaphore")
    loads = references(image, message_addresses(image, YIELD_MESSAGES))
    yields = {groups.entry_of(site) for site in loads} - {None}
    rules = _rules(table, groups, waits, frozenset(entry for entry in yields if entry is not None))
    return Sites(
        build_id=image.build_id,
        waits=(),
        yields=(),
        acquires=(),
        releases=(),
        forced_drops=(),
        forced_takes=(),
        callers=rules,
        checks=(_sentence(rules),),
    )


def _waits(image: ElfImage) -> tuple[FrameTable, FunctionGroups, list[LibraryCall]]:
    table = read_frame_table(image)
    branches = scan_branches(image, table, read_linkage(image), frozenset({_WAIT}))
    exports = frozenset(symbol.vaddr for symbol in image.dynamic_symbols.values())
    groups = FunctionGroups(table, branches, exports, image.budget)
    starts = InstructionStarts(image, table)
    waits = [
        call
        for call in branches.library_calls
        if starts.place_of(call.site) in (Place.START, Place.UNKNOWN)
    ]
    return table, groups, waits


def _rules(
    table: FrameTable,
    groups: FunctionGroups,
    waits: Iterable[LibraryCall],
    yields: frozenset[int],
) -> tuple[CallerRule, ...]:
    """Return how to step from where `sem_wait` returns to, to the evaluation loop.

    None at all where the loop is not among the callers, or a rule is missing.
    """
    rules: dict[int, CallerRule] = {}
    for call in waits:
        entry, behind = groups.entry_of(call.site), call.site + call.length
        if entry in yields:
            # PyThread_acquire_lock has become a part of the loop.
            rules[behind] = CallerRule(behind, made_to_yield=True)
            continue
        rule = table.rule_at(behind - 1)
        if entry is None or rule is None:
            return ()
        rules[behind] = CallerRule(
            behind,
            made_to_yield=False,
            cfa_from_frame_pointer=rule.cfa_from_frame_pointer,
            cfa_offset=rule.cfa_offset,
            saved_frame_pointer_offset=rule.saved_frame_pointer_offset,
        )
        for loop in yields:
            for pc in groups.return_addresses(entry, loop):
                rules[pc] = CallerRule(pc, made_to_yield=True)
    if not any(rule.made_to_yield for rule in rules.values()):
        return ()
    return tuple(rules[pc] for pc in sorted(rules))


def _sentence(rules: tuple[CallerRule, ...]) -> str:
    if not rules:
        return "the evaluation loop's tick was not identified: why a thread waits is unknown"
    places = ", ".join(f"{rule.pc:#x}" for rule in rules if rule.made_to_yield)
    return f"at its ticks the evaluation loop takes the lock back at {places}"
