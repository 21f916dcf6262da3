"""Finds out where the threads of a process keep a variable of which each has its own."""

import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from gilscope.elf.image import ElfError, Segment
from gilscope.elf.thread_variable import ThreadVariable, find_thread_variable
from gilscope.errors import GilscopeError
from gilscope.process.files.code_files import CodeFile, code_files, load_biases
from gilscope.process.files.mapped_file import open_mapped
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import Mapping
from gilscope.process.remote_read import read_int
from gilscope.values import dataclass

__all__ = ["LocatedVariable", "VariablePlace", "VariableSearch"]

_MOST_FILES: Final = 4096
_FARTHEST: Final = 1 << 24
"""From a thread's descriptor to what every thread has from its start, bytes."""
_MOST_MODULES: Final = 1 << 16
_MUSL: Final = "ld-musl-"
_TABLES: Final = {False: (16, -16), True: (8, 0)}
"""Of blocks, with glibc and with musl: size of an entry, and where the length is."""
_MOST_NEW: Final = 8
"""Large programs have hundreds, and whoever looks has other things to do in between."""


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """Where each thread has its own."""

    offset: int
    """From the thread's descriptor, or from its block of *module*."""
    module: int
    """0: from the descriptor."""
    entry_size: int
    """Of the table of a thread's blocks, bytes: as the C library makes it."""
    length_at: int
    """Where that has the number of its entries, from its beginning."""


@dataclass(frozen=True, slots=True)
class LocatedVariable:
    """A file of a process that exports the variable, and where that is loaded."""

    variable: ThreadVariable
    file: Mapping
    bias: int
    """How far above its own addresses the file is loaded."""
    is_program: bool
    is_musl: bool

    def place(self, memory: ProcessMemory) -> VariablePlace | None:
        """Return where threads have it, None where no slot tells that yet.

        Raises TornRead, and OSError where the process has gone.
        """
        if isinstance(memory, GuardedMemory):
            # Its slots lie in the mapped file, which has been examined.
            memory.allow(self.file)
        found = _place(self.variable, memory, self.bias, is_program=self.is_program)
        return None if found is None else VariablePlace(*found, *_TABLES[self.is_musl])


class VariableSearch:
    """Looks for one variable in the files that processes have mapped.

    A file is opened once, whichever process has it. No memory is read.
    """

    def __init__(self, name: str, most_new: int = _MOST_NEW) -> None:
        """Look for *name*, in *most_new* files at a time that were not seen before."""
        self._name = name
        self._most_new = most_new
        self._known: OrderedDict[tuple[int, int], _File | None] = OrderedDict()
        """Those with the variable, by device and inode."""

    def locate(self, pid: int, mappings: Sequence[Mapping]) -> tuple[LocatedVariable | None, bool]:
        """Return the file of *pid* that exports it, and whether all have been looked into."""
        files = code_files(mappings)
        left = self._most_new
        for at, file in enumerate(files):
            identity = file.first.device, file.first.inode
            if identity not in self._known:
                if not left:
                    return None, False
                left -= 1
                self._learn(identity, self._opened(pid, file))
            self._known.move_to_end(identity)
            found = self._known[identity]
            if found is not None:
                with contextlib.suppress(ElfError):
                    bias = load_biases(found.segments, file)[0]
                    is_musl = any(_MUSL in each.path for each in files)
                    return LocatedVariable(found.variable, file.first, bias, at == 0, is_musl), True
        return None, True

    def _learn(self, identity: tuple[int, int], found: "_File | None") -> None:
        self._known[identity] = found
        if len(self._known) > _MOST_FILES:
            self._known.popitem(last=False)

    def _opened(self, pid: int, file: CodeFile) -> "_File | None":
        # What may not be opened, or is no proper file, exports nothing for us.
        with contextlib.suppress(GilscopeError, ElfError):
            opened = open_mapped(pid, file.first)
            try:
                image = opened.image()
                variable = find_thread_variable(image, self._name)
                return None if variable is None else _File(variable, image.segments)
            finally:
                opened.close()
        return None


@dataclass(frozen=True, slots=True)
class _File:
    variable: ThreadVariable
    segments: Sequence[Segment]


def _place(
    variable: ThreadVariable, memory: ProcessMemory, bias: int, *, is_program: bool
) -> tuple[int, int] | None:
    """Return offset and module; None where no slot tells them yet; raises TornRead, OSError."""
    for slot in variable.distances:
        distance = read_int(memory, bias + slot, 8)
        if -_FARTHEST < distance < 0:
            return distance, 0
    for slot in variable.descriptors:
        # What its function is called with is the distance, or where module and offset are.
        argument = read_int(memory, bias + slot + 8, 8)
        if -_FARTHEST < argument < 0:
            return argument, 0
        if argument > 0:
            module, offset = read_int(memory, argument, 8), read_int(memory, argument + 8, 8)
            if 0 < module < _MOST_MODULES and offset == variable.offset:
                return offset, module
    for slot in variable.modules:
        module = read_int(memory, bias + slot, 8)
        if 0 < module < _MOST_MODULES:
            return variable.offset, module
    return (variable.distance, 0) if is_program else None
