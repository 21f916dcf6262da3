"""Finds where the evaluation loop gives the GIL away because it was asked to."""

from typing import Final

from gilscope.gil.callers import releasing_functions, yield_functions
from gilscope.gil.code import SIGNAL, Code
from gilscope.gil.lock_functions import LockFunctions

__all__ = ["forced_drops"]

_DIRECT_CALL_LENGTH: Final = 5


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
        behind - _DIRECT_CALL_LENGTH
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
