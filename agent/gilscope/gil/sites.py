"""Finds the instructions of a CPython ELF file at which the GIL changes hands."""

from collections.abc import Iterable
from typing import Final

from gilscope.elf import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.gil.branches import LibraryCall
from gilscope.gil.callers import caller_rules, yield_functions
from gilscope.gil.code import SIGNAL, TIMED_WAITS, WAIT, Code, FunctionFacts, read_code
from gilscope.gil.forced_drops import forced_drops
from gilscope.gil.instructions import STRAIGHT_LINE, distance_to_emulated
from gilscope.gil.lock_functions import LockFunctions, find_lock_functions
from gilscope.gil.model import PausePoint, Site, Sites
from gilscope.gil.pauses import LOOKAHEAD, distance_to_jump
from gilscope.gil.symbol_check import check_symbols

__all__ = ["resolve_sites"]

_X86_64: Final = "x86-64"

_CALL_THROUGH_SLOT_LENGTH: Final = 6


def resolve_sites(image: ElfImage) -> Sites:
    """Return where the GIL is waited for, taken and given up in this file.

    Raises GilCodeNotFound with the reason where that is not certain, ElfError where the file is
    damaged.
    """
    if image.machine != _X86_64:
        raise GilCodeNotFound(f"built for {image.machine}; only {_X86_64} code is understood")
    if not image.sections:
        raise GilCodeNotFound("the file has no section headers")
    code = read_code(image)
    lock = find_lock_functions(code)
    agreement = check_symbols(image, code, lock)
    droppers = lock.drops + lock.unproven
    callers = caller_rules(code, lock)
    return Sites(
        build_id=image.build_id,
        waits=tuple(_pause(image, call) for call in _calls(lock.takes, *TIMED_WAITS)),
        yields=tuple(_pause(image, call) for call in _calls(droppers, WAIT)),
        acquires=tuple(_site(image, call.site) for call in _calls(lock.takes, SIGNAL)),
        releases=tuple(_site(image, call.site) for call in _calls(droppers, SIGNAL)),
        # Only with the rules is it known that a wait follows.
        forced_drops=tuple(_site(image, pc) for pc in forced_drops(code, lock)) if callers else (),
        forced_takes=tuple(_taken(image, rule.pc) for rule in callers if rule.made_to_yield),
        callers=callers,
        checks=(
            *_structure(lock),
            agreement,
            _yield_sentence(code, lock, is_usable=bool(callers)),
            *_cost(_calls(lock.takes + droppers, SIGNAL, WAIT, *TIMED_WAITS)),
        ),
    )


def _calls(functions: Iterable[FunctionFacts], *names: str) -> tuple[LibraryCall, ...]:
    return tuple(sorted(call for facts in functions for call in facts.named(*names)))


def _site(image: ElfImage, vaddr: int) -> Site:
    return Site(vaddr, image.file_offset(vaddr))


def _pause(image: ElfImage, call: LibraryCall) -> PausePoint:
    behind = call.site + call.length
    return PausePoint(
        _site(image, call.site),
        _site(image, behind + distance_to_jump(image.read(behind, LOOKAHEAD))),
    )


def _taken(image: ElfImage, behind: int) -> Site:
    return _site(image, behind + distance_to_emulated(image.read(behind, STRAIGHT_LINE)))


def _structure(lock: LockFunctions) -> tuple[str, str]:
    takes = ", ".join(f"{facts.entry or 0:#x}" for facts in lock.takes)
    unproven = f" and {len(lock.unproven)} that may" if lock.unproven else ""
    return (
        f"take_gil at {takes}: a timed wait, a signal and its messages, entered from the C API",
        f"{len(lock.drops)} functions give up the GIL by their messages{unproven}",
    )


def _yield_sentence(code: Code, lock: LockFunctions, *, is_usable: bool) -> str:
    if not is_usable:
        return "the evaluation loop's yield was not identified: why a thread waits is unknown"
    entries = ", ".join(f"{entry:#x}" for entry in sorted(yield_functions(code, lock)))
    return f"the evaluation loop yields in the function at {entries}"


def _cost(calls: tuple[LibraryCall, ...]) -> tuple[str, ...]:
    if not any(call.length == _CALL_THROUGH_SLOT_LENGTH for call in calls):
        return ()
    return ("calls go through the GOT (-fno-plt): the kernel has to single-step the probes",)
