"""Tells which functions of a file acquire the GIL and which ones release it."""

from typing import Final

from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.code_index import (
    LOCK,
    SIGNAL,
    TIMED_WAITS,
    UNLOCK,
    WAIT,
    Code,
    FunctionFacts,
)
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.values import dataclass

__all__ = ["LockFunctions", "find_lock_functions"]

_MOST_TAKES: Final = 3
_DEEPEST_CALL: Final = 5
_MOST_SHOWN: Final = 8
_TAKING_EXPORTS: Final = (
    "PyEval_RestoreThread",
    "PyEval_AcquireThread",
    "PyEval_AcquireLock",
    "PyGILState_Ensure",
)


@dataclass(frozen=True, slots=True)
class LockFunctions:
    """The functions that make up the GIL."""

    takes: tuple[FunctionFacts, ...]
    """Copies of take_gil."""
    drops: tuple[FunctionFacts, ...]
    """Copies of drop_gil, of its two halves, and functions into which it has been inlined."""
    unproven: tuple[FunctionFacts, ...]
    """Functions that signal a condition variable under a mutex and carry no message of the GIL.

    Whether one of them gives up a GIL is told at run time, by the argument of the call.
    """


def find_lock_functions(code: Code) -> LockFunctions:
    """Return the functions of the lock; raises GilCodeNotFound where they are not certain."""
    takes = tuple(facts for facts in code.functions if _is_take(facts))
    if not takes:
        raise GilCodeNotFound(_why_no_take(code))
    if len(takes) > _MOST_TAKES:
        raise GilCodeNotFound(
            f"{len(takes)} functions look like take_gil ({_addresses(takes)}); "
            f"no build is known to have more than {_MOST_TAKES}"
        )
    if not any(_is_reached(code, facts) for facts in takes):
        raise GilCodeNotFound(
            f"the function at {_addresses(takes)} looks like take_gil, "
            f"but {_TAKING_EXPORTS[0]} does not lead to it"
        )
    others = tuple(facts for facts in code.functions if facts not in takes)
    drops = tuple(facts for facts in others if facts.has_gil_message and _is_drop(facts))
    if not any(facts.named(SIGNAL) for facts in drops):
        raise GilCodeNotFound(
            f"take_gil found at {_addresses(takes)}, but no function that looks like drop_gil"
        )
    unproven = tuple(facts for facts in others if _may_drop(facts))
    return LockFunctions(takes, drops, unproven)


def _is_take(facts: FunctionFacts) -> bool:
    return facts.has_gil_message and all(
        facts.named(*names) for names in (TIMED_WAITS, (SIGNAL,), (LOCK,))
    )


def _is_drop(facts: FunctionFacts) -> bool:
    """Tell a whole drop, or one of the halves that 3.13 and later are made of."""
    releases = bool(facts.named(SIGNAL) and facts.named(UNLOCK))
    yields = bool(facts.named(WAIT))
    return bool(facts.named(LOCK)) and (releases or yields)


def _may_drop(facts: FunctionFacts) -> bool:
    """Tell a function into which a drop may have been inlined, without its messages."""
    # One of the two may be a jump, at the function's end.
    uses_mutex = bool(facts.named(LOCK, UNLOCK))
    return not facts.has_gil_message and uses_mutex and bool(facts.named(SIGNAL))


def _is_reached(code: Code, facts: FunctionFacts) -> bool:
    exports = {code.exports[name] for name in _TAKING_EXPORTS if name in code.exports}
    return bool(exports & _callers_up_to(code.groups, facts.entry, _DEEPEST_CALL))


def _callers_up_to(groups: FunctionGroups, entry: int, depth: int) -> frozenset[int]:
    """Return a function, its callers, their callers and so on."""
    found = {entry}
    edge = {entry}
    for _ in range(depth):
        edge = {caller for callee in edge for caller in groups.callers(callee)} - found
        found |= edge
    return frozenset(found)


def _why_no_take(code: Code) -> str:
    if not len(code.table):
        return "the file has no unwind table (.eh_frame) that tells where functions begin"
    if not any(facts.named(*TIMED_WAITS) for facts in code.functions):
        misread = f" ({code.misread_calls} places only read like calls)" * bool(code.misread_calls)
        return f"nothing in the file calls {' or '.join(TIMED_WAITS)}{misread}"
    if not any(facts.has_gil_message for facts in code.functions):
        return "nothing in the file refers to the messages of take_gil and drop_gil"
    return (
        "no function waits with a time-out, signals a condition variable and refers to the "
        "messages of take_gil"
    )


def _addresses(functions: tuple[FunctionFacts, ...]) -> str:
    shown = ", ".join(f"{facts.entry:#x}" for facts in functions[:_MOST_SHOWN])
    return shown + ", ..." * (len(functions) > _MOST_SHOWN)
