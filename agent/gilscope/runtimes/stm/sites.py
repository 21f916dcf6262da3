"""Finds where a file begins, ends and aborts transactions. Entries of functions only.

A function that begins a transaction returns again when it is tried again, and one that ends it may
never return: a probe on the return of such a function kills the program.
"""

import re
from collections.abc import Callable

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.model.transactions import Library, Method
from gilscope.runtimes.stm.libitm import restart_address
from gilscope.runtimes.stm.numberings import BEGINS, Numbering, numbering_of
from gilscope.values import dataclass

__all__ = ["MARKS", "StmHook", "StmSites", "find_sites"]

MARKS = (b"stm_start_transaction", b"_ITM_beginTransaction")
"""A file without either of them is of no interest."""

_ABORT, _INEVITABLE = "stm_abort_transaction", "_stm_become_inevitable"
_LEAVE = "_stm_leave_noninevitable_transactional_zone"
_UNREGISTER = "stm_unregister_thread_local"
_EVENT, _EVENT_POINTER = "_stm_profiling_event", "stmcb_timing_event"
_TELLING = ("stm_validate", "stm_hashtable_iter")
"""What tells the numberings of events apart."""

_BEGIN, _COMMIT = "_ITM_beginTransaction", "_ITM_commitTransaction"
_COMMIT_EXCEPTION = "_ITM_commitTransactionEH"
_CANCEL, _MODE = "_ITM_abortTransaction", "_ITM_changeTransactionMode"
_REQUIRED = (*BEGINS, _ABORT, _BEGIN, _COMMIT)
"""Without the begin or the end of transactions nothing can be said of them."""
_RESTART = "_ZN3GTM10gtm_thread7restartENS_18gtm_restart_reasonEb"

_LOCAL = re.compile(
    "|".join(
        (
            *(*BEGINS, _ABORT, _INEVITABLE, _LEAVE, _UNREGISTER, _EVENT, *_TELLING),
            *(_BEGIN, _COMMIT, _COMMIT_EXCEPTION, _CANCEL, _MODE, _RESTART),
        )
    )
)
"""The names that are wanted where they are not exported."""
_LARGEST_COMMIT = 1 << 16
"""Bytes of a function that commits."""

ReadPointer = Callable[[int], int | None]
"""The value of the pointer at a virtual address of the file, as the process has it; or None."""


@dataclass(frozen=True, slots=True)
class StmHook:
    """A place in the file for one of the probe's programs."""

    program: str
    offset: int
    """In the file, bytes."""


@dataclass(frozen=True, slots=True)
class StmSites:
    """Where one file deals with transactions, and how that was found out."""

    library: Library
    method: Method
    hooks: tuple[StmHook, ...]
    checks: tuple[str, ...]
    """What was found in which way, in words."""
    event_pointer: int | None = None
    """Virtual address of the pointer that is null while the program does not log."""
    event_function: int | None = None
    """Virtual address of what it points to."""
    numbering: Numbering = Numbering.SURE
    """What the numbers of events stand for."""


def find_sites(image: ElfImage, read_pointer: ReadPointer) -> StmSites | None:
    """Return the sites in *image*, None where it runs no transactions; raises ElfError.

    *read_pointer* returns what the process has at a virtual address of the file, with the file's
    load bias taken off again.
    """
    symbols = _Symbols(image)
    begin = symbols.begin()
    is_rpython = begin is not None and symbols.function(_ABORT) is not None
    is_libitm = symbols.function(_BEGIN) is not None and symbols.function(_COMMIT) is not None
    if (is_rpython or is_libitm) and image.architecture != X86_64:
        raise ElfError(f"it runs transactions, which are not known on {image.machine}")
    if begin is not None and is_rpython:
        return _rpython(image, symbols, begin, read_pointer)
    return _libitm(image, symbols) if is_libitm else None


class _Symbols:
    """The names of a file: those that it exports, and those that are left in its symbol table."""

    def __init__(self, image: ElfImage) -> None:
        self._image = image
        self._starts = InstructionStarts(image, read_frame_table(image))
        self._exported = image.dynamic_symbols
        self._local = {symbol.name: symbol for symbol in image.functions_named(_LOCAL)}

    def function(self, name: str) -> tuple[int, str] | None:
        """Return the virtual address of a function, and in words how it was found; or None."""
        exported = self._exported.get(name)
        if exported is not None and exported.is_function:
            return exported.vaddr, "an exported name"
        local = self._local.get(name)
        return None if local is None else (local.vaddr, "a name in the symbol table")

    def begin(self) -> str | None:
        """Return the name of what begins a transaction of RPython once, however often it is tried.

        Where the program exports the older name, the other is that of an inner function.
        """
        latest, older = BEGINS
        if latest in self._exported or self.function(older) is None:
            return latest if self.function(latest) is not None else None
        return older

    def is_start(self, vaddr: int) -> bool:
        """Return whether a known function has an instruction that starts at an address."""
        return self._starts.is_start(vaddr)

    def code(self, name: str) -> tuple[int, bytes] | None:
        """Return the virtual address and the code of an exported function, or None."""
        exported = self._exported.get(name)
        if exported is None or not exported.is_function:
            return None
        size = min(exported.size, _LARGEST_COMMIT)
        return exported.vaddr, self._image.read(exported.vaddr, size)

    def data(self, name: str) -> int | None:
        """Return the virtual address of an exported variable, or None."""
        exported = self._exported.get(name)
        return None if exported is None or exported.is_function else exported.vaddr


def _libitm(image: ElfImage, symbols: _Symbols) -> StmSites:
    programs = {
        _COMMIT: "on_itm_commit",
        _COMMIT_EXCEPTION: "on_itm_commit",
        _CANCEL: "on_itm_cancel",
        _MODE: "on_itm_mode",
        _BEGIN: "on_itm_begin",
    }
    hooks, checks = _by_name(image, symbols, programs)
    restart = symbols.function(_RESTART) or _restart_by_code(symbols)
    if restart is None or not symbols.is_start(restart[0]):
        checks = (*checks, "restarts: not seen, neither a name nor a failed commit leads to them")
        return StmSites(Library.LIBITM, Method.NAMES, hooks, checks)
    # In place before a transaction is seen to begin that may be restarted.
    hooks = (StmHook("on_itm_restart", image.file_offset(restart[0])), *hooks)
    return StmSites(Library.LIBITM, Method.RESTARTS, hooks, (*checks, f"restarts: {restart[1]}"))


def _restart_by_code(symbols: _Symbols) -> tuple[int, str] | None:
    commits = [symbols.code(name) for name in (_COMMIT, _COMMIT_EXCEPTION)]
    vaddr = restart_address(
        (commit for commit in commits if commit is not None), is_start=symbols.is_start
    )
    if vaddr is None or None in commits:
        return None
    return vaddr, "where both functions go whose commit has failed"


def _rpython(image: ElfImage, symbols: _Symbols, begin: str, read_pointer: ReadPointer) -> StmSites:
    inevitable, checks = _by_name(
        image, symbols, {_LEAVE: "on_leave", _INEVITABLE: "on_become_inevitable"}
    )
    numbering = numbering_of(begin, lambda name: symbols.function(name) is not None)
    pointer = symbols.data(_EVENT_POINTER)
    event = None if pointer is None else read_pointer(pointer)
    named = symbols.function(_EVENT)
    if event and symbols.is_start(event) and (named is None or named[0] == event):
        how = f"where the exported pointer {_EVENT_POINTER} leads"
        if named is not None:
            how = f"{named[1]}, and {how}"
        numbers = "not known but for the first three"
        if numbering is not Numbering.SURE:
            numbers = f"those of {numbering.name}, by what the program exports"
        return StmSites(
            Library.RPYTHON,
            Method.EVENTS_BASIC if numbering is Numbering.SURE else Method.EVENTS,
            (StmHook("on_event", image.file_offset(event)), *inevitable),
            (f"{_EVENT}: {how}", f"numbers of events: {numbers}", *checks),
            pointer,
            event,
            numbering,
        )
    programs = {_ABORT: "on_abort", begin: "on_start", _UNREGISTER: "on_unregister"}
    method = Method.ENTRIES
    if numbering is Numbering.C7:
        # There what a conflict aborts goes another way, which has no exported name.
        del programs[_ABORT]
        method = Method.BEGINS
    hooks, more = _by_name(image, symbols, programs)
    why = _why_no_events(pointer, event)
    return StmSites(
        Library.RPYTHON, method, (*hooks, *inevitable), (why, *more, *checks), pointer, None
    )


def _why_no_events(pointer: int | None, event: int | None) -> str:
    if pointer is None:
        return f"events: not seen, there is no exported pointer {_EVENT_POINTER}"
    if not event:
        return f"events: not seen, because the program does not log ({_EVENT_POINTER} is null)"
    return f"events: not seen, {_EVENT_POINTER} does not lead to {_EVENT} of the same file"


def _by_name(
    image: ElfImage, symbols: _Symbols, programs: dict[str, str]
) -> tuple[tuple[StmHook, ...], tuple[str, ...]]:
    hooks, checks = [], []
    for name, program in programs.items():
        found = symbols.function(name)
        if found is None:
            continue
        vaddr, how = found
        if symbols.is_start(vaddr):
            hooks.append(StmHook(program, image.file_offset(vaddr)))
            checks.append(f"{name}: {how}")
        elif name in _REQUIRED:
            raise ElfError(f"{name} at {vaddr:#x}: no instruction is known to start there")
        else:
            checks.append(f"{name}: left out, no instruction is known to start at {vaddr:#x}")
    return tuple(hooks), tuple(checks)
