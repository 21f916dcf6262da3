"""Names the functions of C code at addresses in a process."""

import contextlib
from collections import Counter

from gilscope.elf.image import ElfError
from gilscope.errors import GilscopeError
from gilscope.naming.cxx_names import demangled
from gilscope.process.files.code_files import CodeFile, load_biases
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.mapped_file import open_mapped
from gilscope.values import dataclass

__all__ = ["CodePlace", "CodePlaces"]

_MOST_FILES = 64
_MOST_PLACES = 4096
_MOST_SEARCHES = 64
"""In one file: a large one has a million symbols, which takes a tenth of a second and more."""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where an address lies."""

    module: str
    """The name of the file, without its folder."""
    function: str
    """Empty: no symbol tells it."""


class CodePlaces:
    """The code of one process. Symbols are searched for once for each function, and not kept."""

    def __init__(self, pid: int, mappings: CodeMappings) -> None:
        self._pid = pid
        self._mappings = mappings
        self._known: dict[int, CodePlace | None] = {}
        self._functions: list[tuple[int, int, CodePlace]] = []
        """Where those begin and end that have been found."""
        self._searches: Counter[str] = Counter()
        """By path of the file."""

    def place(self, address: int) -> CodePlace | None:
        """Return where *address* is, None where no file is mapped there as code."""
        if address not in self._known:
            if len(self._known) >= _MOST_PLACES:
                self._known.clear()
            self._known[address] = self._search(address)
        return self._known[address]

    def _search(self, address: int) -> CodePlace | None:
        for begin, end, place in self._functions:
            if begin <= address < end:
                return place
        file = self._mappings.file(address)
        if file is None:
            return None
        module = file.path.rpartition("/")[2]
        if self._searches[file.path] >= _MOST_SEARCHES or len(self._searches) > _MOST_FILES:
            return CodePlace(module, "")
        self._searches[file.path] += 1
        try:
            found = self._function(file, address)
        except (ElfError, GilscopeError, OSError):
            # It is told by its name alone, and not read again.
            self._searches[file.path] = _MOST_SEARCHES
            found = None
        if found is None:
            return CodePlace(module, "")
        begin, size, name = found
        place = CodePlace(module, demangled(name))
        if len(self._functions) < _MOST_PLACES:
            self._functions.append((begin, begin + size, place))
        return place

    def _function(self, file: CodeFile, address: int) -> tuple[int, int, str] | None:
        """Return where the function around *address* begins, its size and its name."""
        with contextlib.closing(open_mapped(self._pid, file.first)) as opened:
            image = opened.image()
            for bias in load_biases(image.segments, file):
                if image.is_code(address - bias):
                    symbol = image.function_at(address - bias)
                    if symbol is not None:
                        return symbol.vaddr + bias, symbol.size, symbol.name
        return None
