"""Which files a process has mapped as code, and where: from one reading of its mappings."""

import re
from collections.abc import Sequence
from typing import Final

from gilscope.elf.image import ElfError, Segment
from gilscope.process.procfs import Mapping
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = ["CodeFile", "code_files", "likely_interpreters", "load_biases"]

_PAGE: Final = 4096
_LIBPYTHON: Final = re.compile(r"(?:^|/)lib(python|pypy)[^/]*\.so[^/]*$")
_PYTHON: Final = re.compile(r"(?:^|/)(python|pypy)[^/]*$")
_ODD_NAME: Final = re.compile(r"(python|pypy)[^/]*$")
_MOST_LIKELY, _MOST_ODD = 8, 64
"""Files that are opened in search of an interpreter."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file that a process has mapped, some of it as code."""

    first: Mapping
    """The lowest that begins at the file's first byte."""
    executable: tuple[Mapping, ...]

    @property
    def path(self) -> str:
        """As the process sees it, see `Mapping.path`."""
        return self.first.path


def code_files(mappings: Sequence[Mapping]) -> tuple[CodeFile, ...]:
    """Return the files of *mappings* that hold code, by where they are mapped first."""
    by_file: dict[tuple[int, int, str], list[Mapping]] = {}
    for mapping in mappings:
        by_file.setdefault(mapping.file, []).append(mapping)
    found = []
    for each in by_file.values():
        first = next((mapping for mapping in each if mapping.offset == 0), None)
        executable = tuple(mapping for mapping in each if mapping.executable)
        if first is not None and executable:
            found.append(CodeFile(first, executable))
    return tuple(found)


def likely_interpreters(
    files: Sequence[CodeFile], program: str
) -> tuple[tuple[CodeFile, ...], tuple[CodeFile, ...]]:
    """Return the files that may hold an interpreter: likely ones, then unlikely ones.

    *program* is the path of the executable; under an explicit ld.so that is not the program.
    """
    own = [file for file in files if file.path == program] or list(files[:1])
    named = [
        file
        for search in (_LIBPYTHON.search, _PYTHON.search)
        for file in files
        if search(file.path) and file not in own
    ]
    likely = (*own, *named)[:_MOST_LIKELY]
    odd = [file for file in files if _ODD_NAME.search(file.path) and file not in likely]
    return likely, tuple(odd[:_MOST_ODD])


def load_biases(segments: Sequence[Segment], file: CodeFile) -> tuple[int, ...]:
    """Return how far above its own addresses *file* is loaded, once for each time that it is.

    Raises ElfError where it is not loaded as its *segments* say.
    """
    # A program may map a file again to read it, and only where it is run is there code. Parts of a
    # segment may have been given other rights since, and have then become mappings of their own.
    found = dict.fromkeys(
        mapping.start - (segment.vaddr - segment.offset + mapping.offset)
        for mapping in file.executable
        for segment in segments
        if segment.is_executable and _holds(segment, mapping.offset)
    )
    if not found:
        raise ElfError(f"{printable(file.path)} is not loaded as its program headers say")
    return tuple(found)


def _holds(segment: Segment, offset: int) -> bool:
    start = segment.offset & -_PAGE
    end = segment.offset + segment.file_size
    return start <= offset < end
