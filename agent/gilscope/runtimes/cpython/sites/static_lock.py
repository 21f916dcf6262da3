"""Finds the GIL of CPython 3.6 in its file: variables of their own, with or without symbols.

Before 3.7 the lock is no structure: ``Python/ceval_gil.h`` has eight static variables, which a
compiler puts where it likes. Functions of the C API that read one variable each give some of them;
the others are what take_gil and drop_gil hand to the C library and change. Whatever two of these
say has to be the same, or the file is refused.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from gilscope.arch.x86_64.operands import Access, Call, accesses, calls_with_argument
from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.plt import Linkage, read_linkage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.processors import require_x86_64
from gilscope.runtimes.sites import Sites
from gilscope.values import dataclass

__all__ = ["StaticLock", "find_static_lock"]

_TAKING: Final = ("PyEval_AcquireLock", "PyEval_AcquireThread", "PyEval_RestoreThread")
_DROPPING: Final = ("PyEval_ReleaseLock", "PyEval_ReleaseThread", "PyEval_SaveThread")
_TIMED_WAIT: Final = frozenset(("pthread_cond_timedwait", "pthread_cond_clockwait"))
_SIGNAL: Final = frozenset(("pthread_cond_signal",))
_LONGEST: Final = 64 << 10
"""Bytes of a function that are read; take_gil has some 600."""
_LOAD, _STORE, _STORE_IMMEDIATE, _ADD_IMMEDIATE, _INCREMENT = 0x8B, 0x89, 0xC7, 0x83, 0xFF

# struct gc_generation of 3.6: a head of 32 bytes, threshold, count, and padding.
_GENERATION: Final = 48
_COUNT: Final = 36
_RELA_BYTES: Final = 24
_SHT_RELA: Final = 4
_R_X86_64_RELATIVE: Final = 8


@dataclass(frozen=True, slots=True)
class StaticLock:
    """Addresses as the file states them, before any load bias."""

    cond: int
    switch_cond: int
    interval: int
    last_holder: int
    locked: int
    switch_number: int
    interpreters: int
    """Of the pointer to the newest interpreter."""
    waits: frozenset[int] = frozenset()
    """Of the calls in take_gil that wait for `cond`."""
    collecting: int | None = None
    """Of the int that says that garbage is collected; None: not found."""
    generations: int | None = None
    """Of the three generations of the garbage collector; None: not found."""

    def check(self, sites: Sites) -> None:
        """Raise GilCodeNotFound unless *sites*, found by other signs, are in the same functions."""
        probed = {pause.call.vaddr for pause in sites.waits}
        if probed != self.waits:
            raise _uncertain(f"take_gil waits at {_hex(probed)} or at {_hex(set(self.waits))}")

    @property
    def counts(self) -> tuple[int, ...]:
        """The addresses of the counts of the second and the third generation, if they are known."""
        if self.generations is None:
            return ()
        return tuple(self.generations + number * _GENERATION + _COUNT for number in (1, 2))


def find_static_lock(image: ElfImage) -> StaticLock:
    """Return the variables of the lock of *image*, a CPython 3.6.

    Raises GilCodeNotFound where they are not certain, and ElfError where the file is damaged.
    """
    require_x86_64(image, "the lock of CPython 3.6")
    search = _Search(image)
    locked = search.read_by("PyEval_ThreadsInitialized", is_wide=False)
    interval = search.read_by("_PyEval_GetSwitchInterval", is_wide=True)
    interpreters = search.read_by("PyInterpreterState_Head", is_wide=True)
    takes = search.takes(locked, interval)
    drops = search.drops(locked)
    waits = search.calls(takes, _TIMED_WAIT)
    switches = search.calls(takes, _SIGNAL)
    found = StaticLock(
        cond=_one("condition variable", waits.values()),
        switch_cond=_one("condition variable of switches", switches.values()),
        interval=interval,
        last_holder=_one("holder", (each.address for each in _stores(search, takes))),
        locked=locked,
        switch_number=_one(
            "count of switches",
            (each.address for each in search.accesses(takes) if _adds_one(each)),
        ),
        interpreters=interpreters,
        waits=frozenset(waits),
        collecting=search.collecting(),
        generations=search.generations(),
    )
    search.check_drops(drops, found)
    if len(set(_lock_parts(found))) < len(_lock_parts(found)):
        raise _uncertain("two variables of the lock have one address")
    return found


def _lock_parts(lock: StaticLock) -> tuple[int, ...]:
    return (
        lock.cond,
        lock.switch_cond,
        lock.interval,
        lock.last_holder,
        lock.locked,
        lock.switch_number,
        lock.interpreters,
    )


class _Search:
    """The functions of one file that deal with the lock."""

    def __init__(self, image: ElfImage) -> None:
        self._image = image
        self._table: FrameTable = read_frame_table(image)
        self._linkage: Linkage = read_linkage(image)

    def read_by(self, name: str, *, is_wide: bool) -> int:
        """Return the one variable that the exported function *name* reads."""
        start = self._image.default_version_symbol(name)
        if start is None:
            raise _uncertain(f"the file does not export {name}")
        read = {
            each.address
            for each in accesses(self._code(start), start)
            if each.is_wide is is_wide and each.opcode in {_LOAD, _ADD_IMMEDIATE, 0x3B, 0x39}
        }
        return _one(f"variable that {name} reads", read)

    def takes(self, locked: int, interval: int) -> list[int]:
        """Return the copies of take_gil: they read the interval, and take the lock."""
        found = [
            start
            for start in self._called_by(_TAKING)
            if any(each.address == interval for each in self._accesses(start))
            and _writes(self._accesses(start), locked, 1)
        ]
        if not found:
            raise _uncertain(f"no function that {' or '.join(_TAKING)} leads to takes the lock")
        return found

    def drops(self, locked: int) -> list[int]:
        """Return the copies of drop_gil: they free the lock."""
        found = [
            start
            for start in self._called_by(_DROPPING)
            if _writes(self._accesses(start), locked, 0)
        ]
        if not found:
            raise _uncertain(f"no function that {' or '.join(_DROPPING)} leads to frees the lock")
        return found

    def check_drops(self, drops: list[int], lock: StaticLock) -> None:
        """Raise GilCodeNotFound where drop_gil does not signal and name the holder likewise."""
        signalled = set(self.calls(drops, _SIGNAL).values())
        if signalled != {lock.cond}:
            raise _uncertain(
                f"take_gil waits for {lock.cond:#x}, drop_gil signals {_hex(signalled)}"
            )
        holders = {each.address for each in _stores(self, drops)}
        if holders - {lock.last_holder}:
            raise _uncertain(
                f"take_gil notes its holder at {lock.last_holder:#x}, drop_gil at {_hex(holders)}"
            )

    def accesses(self, functions: list[int]) -> Iterator[Access]:
        """Yield what accesses static variables in *functions*."""
        for start in functions:
            yield from self._accesses(start)

    def calls(self, functions: list[int], names: frozenset[str]) -> dict[int, int]:
        """Return the calls of *names* in *functions*: their address -> their first argument."""
        found = {}
        for start in functions:
            for call in calls_with_argument(self._code(start), start):
                if self._name(call) in names:
                    if call.argument is None:
                        raise _uncertain(f"what the call at {call.site:#x} is given is not certain")
                    found[call.site] = call.argument
        return found

    def collecting(self) -> int | None:
        """Return the variable that PyGC_Collect reads, sets and resets, None if it is not one."""
        start = self._image.default_version_symbol("PyGC_Collect")
        if start is None:
            return None
        found = list(accesses(self._code(start), start))
        both = {
            each.address
            for each in found
            if _writes(found, each.address, 0) and _writes(found, each.address, 1)
        }
        return both.pop() if len(both) == 1 else None

    def generations(self) -> int | None:
        """Return what `_PyGC_generation0` points to, None if the file does not tell."""
        pointer = self._image.default_version_symbol("_PyGC_generation0")
        if pointer is None:
            return None
        for section in self._image.sections:
            if section.kind != _SHT_RELA or section.size % _RELA_BYTES:
                continue
            relocations = self._image.section_bytes(section)
            self._image.budget.spend(section.size // _RELA_BYTES)
            for offset, kind, _, addend in struct.iter_unpack("<QIIq", relocations):
                if offset == pointer and kind == _R_X86_64_RELATIVE:
                    return int(addend)
        if self._image.is_pie:
            return None
        return int.from_bytes(self._image.read(pointer, 8), "little") or None

    def _accesses(self, start: int) -> list[Access]:
        return list(accesses(self._code(start), start))

    def _called_by(self, names: tuple[str, ...]) -> list[int]:
        """Return the exported functions *names*, and those of the file that they call."""
        found: dict[int, None] = {}
        for name in names:
            start = self._image.default_version_symbol(name)
            if start is None:
                continue
            found[start] = None
            for call in calls_with_argument(self._code(start), start):
                piece = None if call.is_slot else self._table.containing(call.target)
                if piece is not None and piece.start == call.target:
                    found[call.target] = None
        return list(found)

    def _name(self, call: Call) -> str | None:
        names = self._linkage.slots if call.is_slot else self._linkage.stubs
        return names.get(call.target)

    def _code(self, start: int) -> bytes:
        piece = self._table.containing(start)
        if piece is None or piece.start != start or piece.end - start > _LONGEST:
            raise _uncertain(f"the file has no unwind table for the function at {start:#x}")
        size = piece.end - start
        self._image.budget.spend(size)
        return self._image.read(start, size)


def _stores(search: _Search, functions: list[int]) -> Iterator[Access]:
    """Yield where a register of 64 bits is written to a variable: who holds the lock."""
    return (each for each in search.accesses(functions) if each.opcode == _STORE and each.is_wide)


def _adds_one(access: Access) -> bool:
    if not access.is_wide or access.register:
        return False
    is_increment = access.opcode == _INCREMENT
    return is_increment or (access.opcode == _ADD_IMMEDIATE and access.immediate == 1)


def _writes(found: list[Access], address: int, value: int) -> bool:
    return any(
        each.opcode == _STORE_IMMEDIATE and (each.address, each.immediate) == (address, value)
        for each in found
    )


def _one(what: str, addresses: Iterable[int]) -> int:
    found = set(addresses)
    if len(found) != 1:
        raise _uncertain(f"{len(found)} addresses ({_hex(found)}) may be the {what}")
    return found.pop()


def _hex(addresses: set[int]) -> str:
    return ", ".join(f"{address:#x}" for address in sorted(addresses)[:8]) or "none"


def _uncertain(why: str) -> GilCodeNotFound:
    return GilCodeNotFound(f"the variables of the lock were not found: {why}")
