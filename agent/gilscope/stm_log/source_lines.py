"""Looks up the source lines of positions in a log, as far as the files can be found now."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from gilscope.stm_log.markers import Position, position_of
from gilscope.text.printable import printable

__all__ = ["SourceLines", "look_up"]

SourceLines = dict[tuple[str, int], str]
"""By the file's name in the log, and the line's number."""

_LARGEST_SOURCE = 4 << 20
_LONGEST_LINE = 160
_COMPILED = (".pyc", ".pyo")


def look_up(markers: Iterable[str], folders: Iterable[Path] = ()) -> SourceLines:
    """Return the lines at which *markers* stand, without indentation, as they are now.

    A file is looked for where the log says, from the working folder if that is a relative name,
    and then below each of *folders*, by as much of the end of its name as is there.
    """
    wanted: dict[str, set[int]] = {}
    for position in map(position_of, markers):
        if position is not None and _is_file(position):
            wanted.setdefault(position.file, set()).add(position.line)
    folders = tuple(folders)
    found: SourceLines = {}
    for file, numbers in wanted.items():
        lines = next(filter(None, map(_lines, _places(file, folders))), [])
        for number in numbers:
            if 0 < number <= len(lines) and (line := _shown(lines[number - 1])):
                found[file, number] = line
    return found


def _is_file(position: Position) -> bool:
    # Neither `<string>` nor a name of nothing but a cut folder is one.
    return not position.file.endswith((*_COMPILED, ">")) and "\0" not in position.file


def _places(file: str, folders: Iterable[Path]) -> Iterator[Path]:
    is_cut = file.startswith("<")
    if not is_cut:
        yield Path(file)
    # What is left of a cut folder is no folder's name.
    parts = [part for part in PurePosixPath(file).parts[is_cut:] if part not in ("/", "..")]
    for folder in folders:
        for first in range(len(parts)):
            yield folder.joinpath(*parts[first:])


def _lines(path: Path) -> list[str]:
    # The log may name anything, and to open a device or to wait for a pipe can have effects.
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with open(path, "rb", opener=_without_waiting) as source:
            content: bytes = source.read(_LARGEST_SOURCE + 1)
    except (OSError, ValueError):
        return []
    return [] if len(content) > _LARGEST_SOURCE else content.decode("utf-8", "replace").split("\n")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _shown(line: str) -> str:
    shown = printable(line.strip()).strip()
    return shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]} …"
