"""Finds the ways from the evaluation loop's forced yield: to the wait, and to the drop."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from gilscope.elf.eh_frame import FrameTable
from gilscope.runtimes.cpython.sites.code_index import SIGNAL, TIMED_WAITS, Code, FunctionFacts
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.cpython.sites.lock_functions import LockFunctions
from gilscope.runtimes.sites import CallerRule

__all__ = ["caller_rules", "forced_drops", "releasing_functions", "yield_functions"]


_EVALUATION_LOOP: Final = "_PyEval_EvalFrameDefault"
# Exported since CPython 3.13. Before that it, or the function whose place it took, refers to a
# message of its own.
_EXPORTED_YIELD: Final = "_Py_HandlePending"
# The probe takes four steps at most: the wait, two wrappers, the yield.
_LONGEST_WAY: Final = 3
_DEEPEST_RELEASE: Final = 3


class _Call(NamedTuple):
    """One function calls another one on the way to take_gil."""

    caller: int
    callee: int


def caller_rules(code: Code, lock: LockFunctions) -> tuple[CallerRule, ...]:
    """Return the steps from each timed wait to the evaluation loop's yield, sorted by pc.

    Empty where the yield could not be identified, or the way to it is not one that the rules can
    describe: it is then not known why a thread waits. Raises ElfError where the unwind table is
    damaged.
    """
    yields = yield_functions(code, lock)
    calls = _ways_down(code.groups, yields, lock)
    if not yields or not yields <= {call.caller for call in calls}:
        return ()
    if _has_second_yield(code, lock, calls) or _is_hidden(code.groups, yields, calls):
        return ()
    waits = [call.site for facts in lock.takes for call in facts.named(*TIMED_WAITS)]
    rules = [_step(code.table, site, site) for site in waits]
    for call in sorted(calls):
        if call.caller in yields:
            # Probes are placed behind these.
            returns = code.return_addresses(call.callee, call.caller)
            rules.extend(CallerRule(pc, made_to_yield=True) for pc in returns)
            continue
        # The call decides; the instruction behind it may belong to another state.
        returns = code.groups.return_addresses(call.callee, call.caller)
        rules.extend(_step(code.table, pc, pc - 1) for pc in returns)
    return _complete(rules)


def yield_functions(code: Code, lock: LockFunctions) -> frozenset[int]:
    """Return the entries of the functions in which the evaluation loop gives the GIL away.

    Empty where they could not be told from the functions that end blocking calls.
    """
    if _EXPORTED_YIELD in code.exports:
        candidates = frozenset({code.exports[_EXPORTED_YIELD]})
    else:
        candidates = code.yield_messages
    releasing = releasing_functions(code.groups, lock, through_jumps=True)
    return candidates if candidates <= releasing else frozenset()


def releasing_functions(
    groups: FunctionGroups, lock: LockFunctions, *, through_jumps: bool = False
) -> frozenset[int]:
    """Return the functions that give up the GIL themselves or through unexported functions.

    Of these a few at most. With *through_jumps* those do not count among them that do nothing but
    jump to the next one in the end.
    """
    found = _releasers(lock)
    edge = found
    takes = _entries(lock.takes)
    for _ in range(_DEEPEST_RELEASE):
        passed = (entry for entry in edge if not groups.is_exported(entry))
        edge = frozenset().union(*(groups.callers(entry) for entry in passed)) - found - takes
        if through_jumps:
            edge |= _jumping(groups, edge) - found - takes
        found |= edge
    return found


def _jumping(groups: FunctionGroups, entries: frozenset[int]) -> frozenset[int]:
    """Return the functions that do nothing with the unexported ones but jump to them in the end."""
    return frozenset(
        caller
        for entry in entries
        if not groups.is_exported(entry)
        for caller in groups.callers(entry)
        if not groups.return_addresses(entry, caller)
    )


def _ways_down(
    groups: FunctionGroups, yields: frozenset[int], lock: LockFunctions
) -> frozenset[_Call]:
    """Return the calls that lead from *yields* to a take.

    They pass through unexported functions that do not give up the GIL: an exported one, or one
    that does, belongs to a blocking call. Ways that are one call too long are among them.
    """
    takes = _entries(lock.takes)
    ends = yields | takes | _releasers(lock)
    calls: set[_Call] = set()
    level = takes
    for _ in range(_LONGEST_WAY + 1):
        edge = {_Call(caller, callee) for callee in level for caller in groups.callers(callee)}
        level = frozenset(
            call.caller
            for call in edge - calls
            if call.caller not in ends and not groups.is_exported(call.caller)
        )
        calls |= edge
    return _below(yields, calls)


def _below(callers: frozenset[int], calls: Iterable[_Call]) -> frozenset[_Call]:
    """Return the calls that can be reached from *callers*."""
    reached = callers
    while True:
        found = frozenset(call for call in calls if call.caller in reached)
        larger = reached | {call.callee for call in found}
        if larger == reached:
            return found
        reached = larger


def _has_second_yield(code: Code, lock: LockFunctions, calls: frozenset[_Call]) -> bool:
    """Whether the evaluation loop also enters the way down by itself, which is not explained."""
    loop = code.exports.get(_EVALUATION_LOOP)
    callees = {call.callee for call in calls} | _entries(lock.takes)
    known = {call.caller for call in calls}
    return loop not in known and any(loop in code.groups.callers(callee) for callee in callees)


def _is_hidden(groups: FunctionGroups, yields: frozenset[int], calls: frozenset[_Call]) -> bool:
    """Whether a yield may be missed: it leaves by a tail call, or the way is too long."""
    for callee in {call.callee for call in calls}:
        if any(groups.entry_of(jump.site) in yields for jump in groups.tail_calls(callee)):
            return True
    # What ends in a jump to the next function leaves no frame to step over.
    jumps = frozenset(
        call for call in calls if not groups.return_addresses(call.callee, call.caller)
    )
    level = yields
    for _ in range(_LONGEST_WAY):
        level = frozenset(call.callee for call in calls - jumps if call.caller in level)
        level |= frozenset(call.callee for call in _below(level, jumps))
    return any(call.caller in level for call in calls)


def _step(table: FrameTable, pc: int, place: int) -> CallerRule | None:
    """Return how to step from *pc* to the caller, by the unwind table's row for *place*."""
    rule = table.rule_at(place)
    # Where a call is made, the address that its function returns to is on the stack.
    if rule is None or rule.return_address_offset is None:
        return None
    return CallerRule(
        pc,
        made_to_yield=False,
        cfa_from_frame_pointer=rule.cfa_from_frame_pointer,
        cfa_offset=rule.cfa_offset,
        saved_frame_pointer_offset=rule.saved_frame_pointer_offset,
        return_address_offset=rule.return_address_offset,
    )


def _complete(rules: Iterable[CallerRule | None]) -> tuple[CallerRule, ...]:
    """Return the rules by ascending pc, or none of them where one is missing or ambiguous."""
    found: dict[int, CallerRule] = {}
    for rule in rules:
        if rule is None or found.setdefault(rule.pc, rule) != rule:
            return ()
    return tuple(found[pc] for pc in sorted(found))


def _entries(functions: Iterable[FunctionFacts]) -> frozenset[int]:
    return frozenset(facts.entry for facts in functions)


def _releasers(lock: LockFunctions) -> frozenset[int]:
    signalling = (facts for facts in lock.drops + lock.unproven if facts.named(SIGNAL))
    return _entries(signalling)


def forced_drops(code: Code, lock: LockFunctions) -> tuple[int, ...]:
    """Return the calls in the yield functions that lead to the release, or are it, sorted.

    A thread gets there only while somebody waits, and still holds the GIL. The release wakes the
    next owner, which may take the CPU too: what the thread does after it, it may do much later.
    """
    yields = yield_functions(code, lock)
    takes = {facts.entry for facts in lock.takes}
    callees = {
        callee
        for callee in releasing_functions(code.groups, lock)
        if callee not in takes | yields and not code.groups.is_exported(callee)
    }
    calls = {
        behind - code.architecture.call_length
        for callee in callees
        for function in yields
        for behind in code.return_addresses(callee, function)
    }
    inlined = {
        call.site
        for facts in lock.drops + lock.unproven
        if facts.entry in yields
        for call in facts.named(SIGNAL)
    }
    return tuple(sorted(calls | inlined))
