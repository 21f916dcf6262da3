"""Finds, in a C library, where threads wait for a semaphore that is taken.

glibc's `sem_wait` takes a free one itself, and jumps to another function otherwise. That function
says that somebody waits, and then sleeps until it gets the semaphore. Its places lie on the
contended path alone, and serve every caller, wherever a compiler has put the call.

Where a semaphore is taken and given back is found as well, for holds. Without it there are waits
alone.
"""

from typing import Final, NamedTuple

from gilscope.arch.base import Exchange
from gilscope.elf.eh_frame import FrameTable, Function, read_frame_table
from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.processors import require_x86_64
from gilscope.runtimes.sites import PausePoint, Site, Sites

__all__ = ["resolve_sites"]

_WAIT, _POST = "sem_wait", "sem_post"
_PUSH, _POP = "_pthread_cleanup_push", "_pthread_cleanup_pop"
_FAILURE: Final = "__stack_chk_fail"
_LARGEST: Final = 4096
"""Bytes of a function of these; they have some two hundred."""


class _Call(NamedTuple):
    site: int
    target: int


def resolve_sites(image: ElfImage) -> Sites:
    """Return where a thread begins to wait, is about to sleep, and has what it waited for.

    Raises GilCodeNotFound with the reason where that is not certain, ElfError where the file is
    damaged.
    """
    require_x86_64(image, f"how {_WAIT} of the C library waits")
    wait = image.default_version_symbol(_WAIT)
    if wait is None:
        raise GilCodeNotFound(f"the C library does not define {_WAIT}")
    try:
        table = read_frame_table(image)
    except ElfError as error:
        raise GilCodeNotFound(f"the C library cannot be read: {error}") from error
    jump, slow = _way_out(image, table, _function(table, wait, _WAIT))
    sleep, taken = _calls_of_slow_path(image, table, slow)
    places = InstructionStarts(image, table)
    for site in (jump, sleep, taken):
        _require_probeable(image, places, site)
    try:
        acquires, releases = _hold_sites(image, table, places, (wait, slow.start))
        holds = f"it is taken at {_listed(acquires)}, and {_POST} gives it back at {releases[0]:#x}"
    except GilCodeNotFound as error:
        acquires, releases = (), ()
        holds = f"its holds are not seen: {error}"
    return Sites(
        build_id=image.build_id,
        waits=(PausePoint(_site(image, jump), _site(image, taken)),),
        yields=(),
        acquires=tuple(_site(image, vaddr) for vaddr in acquires),
        releases=tuple(_site(image, vaddr) for vaddr in releases),
        forced_drops=(),
        forced_takes=(),
        callers=(),
        checks=(
            f"{_WAIT} leaves for its slow path at {jump:#x}, and that sleeps at {sleep:#x}",
            holds,
        ),
        sleeps=(_site(image, sleep),),
    )


def _way_out(image: ElfImage, table: FrameTable, function: Function) -> tuple[int, Function]:
    """Return the jump by which `sem_wait` leaves, with the stack as at its entry, and to where."""
    code = memoryview(image.read(function.start, function.end - function.start))
    found = []
    for position, target in image.architecture.jumps(code, 1 << 31, image.budget.spend):
        site, slow = function.start + position, table.containing(function.start + target)
        is_entry = slow is not None and slow.start == function.start + target
        if slow is not None and is_entry and slow != function:
            found.append((site, slow))
    if len(found) != 1:
        raise GilCodeNotFound(f"{_WAIT} has {len(found)} ways to a slow path, instead of one")
    ((site, slow),) = found
    if table.rule_at(site) != table.at_entry:
        raise GilCodeNotFound(f"{_WAIT} leaves at {site:#x} with something on its stack")
    return site, slow


def _calls_of_slow_path(image: ElfImage, table: FrameTable, function: Function) -> tuple[int, int]:
    """Return the calls by which the slow path sleeps, and by which it ends."""
    size = function.end - function.start
    if size > _LARGEST:
        raise GilCodeNotFound(f"the slow path of {_WAIT} has {size} bytes")
    code = memoryview(image.read(function.start, size))
    names = {symbol.vaddr: name for name, symbol in image.dynamic_symbols.items()}
    begins: list[int] = []
    sleeps: list[int] = []
    ends: list[int] = []
    for position, target in image.architecture.calls(code, 1 << 31, image.budget.spend):
        call = _Call(function.start + position, function.start + target)
        name = names.get(call.target, "")
        if name.startswith(_FAILURE):
            continue
        if name in (_PUSH, _POP):
            (begins if name == _PUSH else ends).append(call.site)
            continue
        callee = table.containing(call.target)
        # What sleeps is a part of the same source, and not exported.
        if callee is not None and callee.start == call.target and not name:
            sleeps.append(call.site)
    if [len(begins), len(sleeps), len(ends)] != [1, 1, 1]:
        raise GilCodeNotFound(
            f"the slow path of {_WAIT} begins {len(begins)} times, sleeps at {len(sleeps)} places "
            f"and ends at {len(ends)}, instead of one each"
        )
    return sleeps[0], ends[0]


def _hold_sites(
    image: ElfImage, table: FrameTable, places: InstructionStarts, takers: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where a semaphore has been taken in *takers*, and where it is about to be given back.

    Raises GilCodeNotFound where a function does not do so by one atomic exchange.
    """
    post = image.default_version_symbol(_POST)
    if post is None:
        raise GilCodeNotFound(f"the C library does not define {_POST}")
    registers = image.architecture.semaphore_registers
    if registers is None:
        raise GilCodeNotFound("no probe is on semaphores of this processor")
    taking, giving = registers
    acquires = tuple(
        function + _exchange(image, table, places, function, taking).jump for function in takers
    )
    release = _only_jump(image, post, _exchange(image, table, places, post, giving).jump_before)
    for site in (*acquires, release):
        _require_probeable(image, places, site)
    return acquires, (release,)


def _exchange(
    image: ElfImage, table: FrameTable, places: InstructionStarts, entry: int, register: int
) -> Exchange:
    """Return the one exchange of a function, with its address in *register*."""
    function = _function(table, entry, f"the function at {entry:#x}")
    code = image.read(entry, function.end - entry)
    found = [
        each for each in image.architecture.exchanges(code) if places.is_start(entry + each.site)
    ]
    if len(found) != 1 or found[0].register != register:
        raise GilCodeNotFound(
            f"the function at {entry:#x} of the C library does not change a semaphore by one "
            "exchange, of the register that is expected"
        )
    return found[0]


def _only_jump(image: ElfImage, entry: int, jump: int | None) -> int:
    """Return the address of the *jump* from *entry* if nothing before can lead away from there."""
    architecture = image.architecture
    at, code = 0, b"" if jump is None else image.read(entry, jump)
    while at < len(code) and not architecture.is_emulated(code[at:]):
        at += architecture.instruction_length(code, at) or len(code) + 1
    if jump is None or at != jump:
        raise GilCodeNotFound(f"{_POST} does not come to its exchange by one jump")
    return entry + jump


def _require_probeable(image: ElfImage, places: InstructionStarts, site: int) -> None:
    code = image.read(site, image.architecture.longest_instruction)
    if not (places.is_start(site) and image.architecture.is_emulated(code)):
        raise GilCodeNotFound(f"no probe belongs at {site:#x} of the C library")


def _listed(addresses: tuple[int, ...]) -> str:
    return " and ".join(f"{address:#x}" for address in addresses)


def _function(table: FrameTable, address: int, name: str) -> Function:
    function = table.containing(address)
    if function is None or function.start != address or function.end - address > _LARGEST:
        raise GilCodeNotFound(f"the unwind table of the C library does not describe {name}")
    return function


def _site(image: ElfImage, vaddr: int) -> Site:
    return Site(vaddr, image.file_offset(vaddr))
