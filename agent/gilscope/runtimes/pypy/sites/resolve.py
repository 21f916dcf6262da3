"""Finds the instructions of PyPy's library at which threads wait for the GIL, and have it."""

from typing import Final

from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.processors import require_x86_64
from gilscope.runtimes.pypy.sites.frame_facts import frame_facts, version_facts
from gilscope.runtimes.pypy.sites.lock_functions import LockFunctions, find_lock_functions
from gilscope.runtimes.sites import CallerRule, PausePoint, Site, Sites

__all__ = ["resolve_sites"]

_ENTRY_BYTES: Final = 48
_MOST_STEPPED: Final = 3
"""Instructions before the first that is cheap to probe: a landing pad and a comparison."""


def resolve_sites(image: ElfImage) -> Sites:
    """Return where the GIL is waited for, and taken, in this file.

    Raises GilCodeNotFound with the reason where that is not certain, ElfError where the file is
    damaged.
    """
    try:
        require_x86_64(image, "the GIL of PyPy")
    except ElfError as error:
        raise GilCodeNotFound(str(error)) from error
    if not image.sections:
        raise GilCodeNotFound("the file has no section headers")
    functions = find_lock_functions(image)
    starts = InstructionStarts(image, functions.table)
    wait, return_offset = _entry(image, functions)
    frames, *told = _frames(image)
    return Sites(
        build_id=image.build_id,
        waits=(
            PausePoint(
                _site(image, starts, wait),
                _site(image, starts, functions.taken),
            ),
        ),
        yields=(),
        acquires=(),
        releases=(),
        forced_drops=(_site(image, starts, functions.given),),
        forced_takes=(),
        callers=(
            CallerRule(pc=wait, made_to_yield=False, cfa_offset=return_offset),
            *(CallerRule(pc=address, made_to_yield=True) for address in functions.returns),
        ),
        checks=(
            *_structure(functions),
            "every probe is placed at the start of an instruction, on the contended path alone",
            *told,
        ),
        facts={
            "lock": functions.lock,
            "waiting": functions.waiting,
            **version_facts(image),
            **frames,
        },
    )


def _structure(functions: LockFunctions) -> tuple[str, str]:
    slow, gives = functions.slow.start, functions.gives.start
    return (
        f"one function waits with a time-out, at {slow:#x}; one yields, at {gives:#x}",
        f"both count who waits, at {functions.waiting:#x}, for the lock at {functions.lock:#x}",
    )


def _frames(image: ElfImage) -> tuple[dict[str, int], str, str]:
    """Return what is known of threads, frames and PyPy's own work, and that in words."""
    try:
        facts, lacks = frame_facts(image)
    except GilCodeNotFound as reason:
        words = f"stacks are not read: {reason}"
        return {}, words, "garbage collection and compilation are not told without them"
    work = lacks or "it notes where it collects garbage and compiles, and tells where"
    return facts, "its own table of types tells where frames and code are", work


def _entry(image: ElfImage, functions: LockFunctions) -> tuple[int, int]:
    """Return the first instruction of the slow path that is cheap to probe.

    And where the canonical frame address is then, from the stack pointer: a caller's address lies
    below that.
    """
    architecture = image.architecture
    start = functions.slow.start
    code = image.read(start, _ENTRY_BYTES)
    position = 0
    for _ in range(_MOST_STEPPED):
        if architecture.is_emulated(code[position:]):
            rule = functions.table.rule_at(start + position)
            if rule is None or rule.cfa_from_frame_pointer:
                break
            return start + position, rule.cfa_offset
        position += architecture.instruction_length(code, position) or _ENTRY_BYTES
    raise GilCodeNotFound(
        "acquiring the GIL of this PyPy begins with no instruction cheap to probe"
    )


def _site(image: ElfImage, starts: InstructionStarts, vaddr: int) -> Site:
    if not starts.is_start(vaddr):
        raise GilCodeNotFound(
            f"the code at {vaddr:#x} belongs to the GIL, but decoding its function from the start "
            "does not show that an instruction begins there"
        )
    return Site(vaddr, image.file_offset(vaddr))
