"""Finds out where the threads of a process keep a variable of which each has its own."""

import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gilscope.elf.image import ElfError
from gilscope.elf.thread_variable import ThreadVariable, find_thread_variable
from gilscope.errors import GilscopeError
from gilscope.process.files.code_files import CodeFile, code_files, load_biases
from gilscope.process.files.mapped_file import open_mapped
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import Mapping
from gilscope.process.remote_read import TornRead, read_int

__all__ = ["VariablePlace", "VariableSearch"]

_MOST_FILES: Final = 4096
_FARTHEST: Final = 1 << 24
"""From a thread's descriptor to what every thread has from its start, bytes."""
_MOST_MODULES: Final = 1 << 16
_MUSL: Final = "ld-musl-"


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


class VariableSearch:
    """Looks for one variable in the files that processes have mapped.

    A file without it is not opened again.
    """

    def __init__(self, name: str) -> None:
        """Look for *name*."""
        self._name = name
        self._known: OrderedDict[tuple[int, int], ThreadVariable | None] = OrderedDict()
        """By device and inode."""

    def find(
        self, pid: int, mappings: Sequence[Mapping], memory: ProcessMemory
    ) -> VariablePlace | None:
        """Return where the threads of *pid* keep it; None: nowhere, or it cannot be told now.

        Raises OSError where the process has gone.
        """
        files = code_files(mappings)
        is_musl = any(_MUSL in file.path for file in files)
        for at, file in enumerate(files):
            variable = self._variable(pid, file)
            if variable is None:
                continue
            # Its slots lie in the mapped file, which has been examined.
            allow = getattr(memory, "allow", None)
            if allow is not None:
                allow(file.first)
            with contextlib.suppress(TornRead):
                found = _place(variable, memory, self._bias(pid, file), is_program=at == 0)
                if found is not None:
                    return VariablePlace(*found, *((8, 0) if is_musl else (16, -16)))
        return None

    def _variable(self, pid: int, file: CodeFile) -> ThreadVariable | None:
        identity = file.first.device, file.first.inode
        if identity in self._known:
            self._known.move_to_end(identity)
            return self._known[identity]
        found = None
        with contextlib.suppress(GilscopeError, ElfError):
            opened = open_mapped(pid, file.first)
            try:
                found = find_thread_variable(opened.image(), self._name)
            finally:
                opened.close()
        self._known[identity] = found
        if len(self._known) > _MOST_FILES:
            self._known.popitem(last=False)
        return found

    def _bias(self, pid: int, file: CodeFile) -> int:
        try:
            opened = open_mapped(pid, file.first)
            try:
                return load_biases(opened.image().segments, file)[0]
            finally:
                opened.close()
        except (GilscopeError, ElfError) as error:
            raise TornRead(str(error)) from error


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
