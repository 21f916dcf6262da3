"""Finds where a mutex is tried for a while before a thread sleeps for it (free-threaded builds)."""

import re
from collections.abc import Iterator
from typing import Final

from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import Branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from gilscope.runtimes.sites import Site
from gilscope.values import dataclass

__all__ = ["SPINS_WITH", "SpinSites", "find_spin"]

_PARK: Final = "_PyParkingLot_Park"
_CLOCK: Final = "PyTime_MonotonicRaw"
_CLOCK_CALL: Final = "clock_gettime"
_YIELD: Final = "sched_yield"

SPINS_WITH: Final = (_YIELD, _CLOCK_CALL)
"""Functions of libc whose calls it takes to find them."""

_COMPARE_EXCHANGE: Final = re.compile(rb"\xf0(?:[\x40-\x4f])?\x0f\xb0(?P<modrm>.)", re.DOTALL)
"""``lock cmpxchg`` of a byte in memory."""
_SETS_LOCKED: Final = re.compile(rb"[\x80\x83][\xc8-\xcf]\x01|\x0c\x01", re.DOTALL)
"""``or $1`` into a register, a few instructions before: the value that takes the lock."""
_BEFORE, _BEHIND = 10, 6
"""Bytes in which those stand, and the jump behind."""
_REX = range(0x40, 0x50)
_REX_B: Final = 1
_IN_MEMORY, _WITH_BYTE = 0, 1
"""Modes of ModRM: no displacement, and one of a byte."""
_NEEDS_SIB, _IS_RIP = 4, 5
"""Registers that stand for something else there."""
_NEAR_JUMP: Final = 0x0F
_IN_PT_REGS: Final = (80, 88, 96, 40, 152, 32, 104, 112, 72, 64, 56, 48, 24, 16, 8, 0)
"""Where the kernel has rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, and r8 to r15 of x86-64."""


@dataclass(frozen=True, slots=True)
class SpinSites:
    """Where a thread begins to want a mutex that is taken, and where it has taken one."""

    wanted: Site
    """Reached once in each acquisition that finds the mutex taken, and in no other."""
    taken: Site
    """A jump behind the compare-exchange that takes it: it has, if the zero flag is set."""
    lock_register: int
    """Where ``struct pt_regs`` has the register with the address of the mutex there, bytes."""


def find_spin(
    image: ElfImage,
    table: FrameTable,
    branches: Branches,
    groups: FunctionGroups,
    starts: InstructionStarts,
) -> SpinSites | None:
    """Return the sites of *image*; None where no function both yields the CPU and parks.

    Raises GilCodeNotFound where there is one in which they are not certain.
    """
    exports = {name: symbol.vaddr for name, symbol in image.dynamic_symbols.items()}
    parking = {groups.entry_of(pc - 1) for pc in branches.calls.get(exports.get(_PARK, 0), ())}
    yielding = {
        groups.entry_of(call.site) for call in branches.library_calls if call.name == _YIELD
    }
    spinning = (parking & yielding) - {None}
    if not spinning:
        return None
    if len(spinning) > 1:
        raise GilCodeNotFound(f"{len(spinning)} functions both yield the CPU and park; one should")
    (entry,) = spinning
    wanted = [
        vaddr
        for vaddr in _clock_calls(image, branches, exports.get(_CLOCK, 0))
        if groups.entry_of(vaddr) == entry and starts.is_start(vaddr)
    ]
    if len(wanted) != 1:
        raise GilCodeNotFound(f"the function that spins asks for the time {len(wanted)} times")
    pieces = [each for each in table.functions if groups.entry_of(each.start) == entry]
    for piece in pieces:
        code = image.read(piece.start, piece.end - piece.start)
        # In one piece the first exchange is that of the attempt before it looks at the clock.
        first = wanted[0] - piece.start if piece.start <= wanted[0] < piece.end else 0
        for position, register in _exchanges(code, first):
            taken = piece.start + position
            if starts.is_start(taken):
                return SpinSites(
                    _site(image, wanted[0]), _site(image, taken), _IN_PT_REGS[register]
                )
    raise GilCodeNotFound("the function that spins has no exchange that takes a mutex")


def _clock_calls(image: ElfImage, branches: Branches, clock: int) -> Iterator[int]:
    length = image.architecture.call_length
    yield from (pc - length for pc in branches.calls.get(clock, ()))
    yield from (call.site for call in branches.library_calls if call.name == _CLOCK_CALL)


def _exchanges(code: bytes, first: int) -> Iterator[tuple[int, int]]:
    """Yield where the jump behind an exchange that locks is, from *first* on, and its register."""
    for match in _COMPARE_EXCHANGE.finditer(code, first):
        modrm = match["modrm"][0]
        mode, register = modrm >> 6, modrm & 7
        end = match.end()
        if mode == _WITH_BYTE and code[end : end + 1] == b"\0":
            end += 1
        elif mode != _IN_MEMORY:
            continue
        if register == _NEEDS_SIB or (register == _IS_RIP and mode == _IN_MEMORY):
            continue
        if not _SETS_LOCKED.search(code, max(first, match.start() - _BEFORE), match.start()):
            continue
        behind = _zero_jump(code, end)
        if behind is not None:
            prefix = code[match.start() + 1]
            yield behind, register + (8 if prefix in _REX and prefix & _REX_B else 0)


def _zero_jump(code: bytes, end: int) -> int | None:
    for position in range(end, end + _BEHIND):
        is_near = code[position] == _NEAR_JUMP
        condition = code[position + is_near : position + is_near + 1]
        if condition in ((b"\x84", b"\x85") if is_near else (b"\x74", b"\x75")):
            return position
    return None


def _site(image: ElfImage, vaddr: int) -> Site:
    return Site(vaddr, image.file_offset(vaddr))
