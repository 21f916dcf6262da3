"""Finds the instructions of a CPython ELF file at which the GIL changes hands."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import LibraryCall
from gilscope.runtimes.cpython.sites.code_index import (
    SIGNAL,
    TIMED_WAITS,
    WAIT,
    Code,
    FunctionFacts,
    read_code,
)
from gilscope.runtimes.cpython.sites.lock_functions import LockFunctions, find_lock_functions
from gilscope.runtimes.cpython.sites.probe_places import ProbePlaces
from gilscope.runtimes.cpython.sites.symbol_check import check_symbols
from gilscope.runtimes.cpython.sites.yield_path import caller_rules, forced_drops, yield_functions
from gilscope.runtimes.sites import CallerRule, Site, Sites

__all__ = ["resolve_sites"]


_MOST_SITES: Final = 1000


def resolve_sites(image: ElfImage) -> Sites:
    """Return where the GIL is waited for, taken and given up in this file.

    Raises GilCodeNotFound with the reason where that is not certain, ElfError where the file is
    damaged.
    """
    try:
        _ = image.architecture
    except ElfError as error:
        raise GilCodeNotFound(str(error)) from error
    if not image.sections:
        raise GilCodeNotFound("the file has no section headers")
    code = read_code(image)
    lock = find_lock_functions(code)
    agreement = check_symbols(image, code, lock)
    places = ProbePlaces(image, code.starts, code.misread_calls)
    callers, drops, takes = _forced(code, lock, places)
    yields = (
        *places.required_pauses(_calls(lock.drops, WAIT)),
        *places.possible_pauses(_calls(lock.unproven, WAIT)),
    )
    releases = (
        *places.required(_calls(lock.drops, SIGNAL)),
        *places.possible(_calls(lock.unproven, SIGNAL)),
    )
    sites = Sites(
        build_id=image.build_id,
        waits=places.required_pauses(_calls(lock.takes, *TIMED_WAITS)),
        yields=tuple(sorted(yields, key=lambda pause: pause.call.vaddr)),
        acquires=places.required(_calls(lock.takes, SIGNAL)),
        releases=tuple(sorted(releases, key=lambda site: site.vaddr)),
        forced_drops=drops,
        forced_takes=takes,
        callers=callers,
    )
    if len(sites.releases) + len(sites.yields) > _MOST_SITES:
        raise GilCodeNotFound(
            f"{len(sites.releases)} releases and {len(sites.yields)} yields of the GIL; no build "
            f"is known to have a tenth of {_MOST_SITES}"
        )
    return replace(
        sites,
        checks=(
            *_structure(lock),
            agreement,
            _yield_sentence(code, lock, is_usable=bool(callers)),
            _placement(sites, places.refused),
            *_cost(
                _calls(lock.takes + lock.drops + lock.unproven, SIGNAL, WAIT, *TIMED_WAITS),
                image,
            ),
        ),
    )


def _forced(
    code: Code, lock: LockFunctions, places: ProbePlaces
) -> tuple[tuple[CallerRule, ...], tuple[Site, ...], tuple[Site, ...]]:
    """Return the rules for callers, and where the evaluation loop's yield begins and ends.

    All of them are empty where one is not certain: a beginning without its end never ends.
    """
    callers = caller_rules(code, lock)
    # Only with the rules is it known that a wait follows.
    drops = places.all_or_none(forced_drops(code, lock) if callers else ())
    takes = places.all_or_none(
        places.emulated_behind(rule.pc) for rule in callers if rule.made_to_yield
    )
    if drops is None or takes is None:
        return (), (), ()
    return callers, drops, takes


def _calls(functions: Iterable[FunctionFacts], *names: str) -> tuple[LibraryCall, ...]:
    return tuple(sorted(call for facts in functions for call in facts.named(*names)))


def _structure(lock: LockFunctions) -> tuple[str, str]:
    takes = ", ".join(f"{facts.entry:#x}" for facts in lock.takes)
    unproven = f" and {len(lock.unproven)} that may" if lock.unproven else ""
    return (
        f"take_gil at {takes}: a timed wait, a signal and its messages, entered from the C API",
        f"{len(lock.drops)} functions give up the GIL by their messages{unproven}",
    )


def _placement(sites: Sites, refused: int) -> str:
    calls = (*sites.acquires, *sites.releases, *sites.forced_drops, *sites.forced_takes)
    pauses = (*sites.waits, *sites.yields)
    both = (site for pause in pauses for site in (pause.call, pause.after))
    placed = len({site.vaddr for site in (*calls, *both)})
    left_out = f"; {refused} left out" if refused else ""
    return (
        f"every probe is placed at the start of an instruction: {placed} of {placed + refused} "
        f"decoded from the start of their functions{left_out}"
    )


def _yield_sentence(code: Code, lock: LockFunctions, *, is_usable: bool) -> str:
    if not is_usable:
        return "the evaluation loop's yield was not identified: why a thread waits is unknown"
    entries = ", ".join(f"{entry:#x}" for entry in sorted(yield_functions(code, lock)))
    return f"the evaluation loop yields in the function at {entries}"


def _cost(calls: tuple[LibraryCall, ...], image: ElfImage) -> tuple[str, ...]:
    is_emulated = image.architecture.is_emulated
    if all(is_emulated(image.read(call.site, call.length)) for call in calls):
        return ()
    return ("calls go through the GOT (-fno-plt): the kernel has to single-step the probes",)
