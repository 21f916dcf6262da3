"""Debian's builds for another processor: files to be read, with the symbols that were taken off."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from support.interpreters.apt import unpack
from support.interpreters.interpreter import Unavailable

__all__ = ["ForeignDebian", "ForeignFile", "FunctionSymbol"]

_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """One function of the debug symbols."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """An interpreter that cannot run here."""

    elf: Path
    """Stripped."""
    functions: tuple[FunctionSymbol, ...]
    """Of its debug symbols, by their addresses."""


@dataclass(frozen=True, slots=True)
class ForeignDebian:
    """The suite's ``python3.x-minimal`` for another processor."""

    minor: str
    suite: str
    architecture: str
    """As Debian calls it: ``arm64``."""

    @property
    def name(self) -> str:
        """Return ``debian-3.11-arm64``."""
        return f"debian-{self.minor}-{self.architecture}"

    def fetch(self, cache: Path) -> None:
        """Put the executable and its symbols under *cache*; raise Unavailable if that fails."""
        folder, packages = cache / self.name, cache / f"{self.name}.packages"
        names = (f"python{self.minor}-minimal", f"python{self.minor}-dbg")
        unpack(cache, self.suite, names, packages, self.architecture)
        executable = packages / "usr" / "bin" / f"python{self.minor}"
        build_id = _build_id(executable)
        debug = packages / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        if not debug.exists():
            message = f"the debug symbols are not those of {executable.name}, {build_id}"
            raise Unavailable(message)
        folder.mkdir(exist_ok=True)
        # The debug information is a hundred times as large as the names.
        lines = (f"{one.start:x} {one.end:x} {one.name}\n" for one in _functions(debug))
        (folder / "functions").write_text("".join(lines))
        shutil.move(executable, folder / "python")
        shutil.rmtree(packages)

    def find(self, cache: Path) -> ForeignFile:
        """Return the file and its symbols; raise Unavailable if they are not there."""
        folder = cache / self.name
        try:
            lines = (folder / "functions").read_text().splitlines()
        except FileNotFoundError:
            message = "not fetched: make interpreters"
            raise Unavailable(message) from None
        rows = (line.split(" ", _COLUMNS - 1) for line in lines)
        functions = (
            FunctionSymbol(name, int(start, 16), int(end, 16)) for start, end, name in rows
        )
        return ForeignFile(folder / "python", tuple(functions))


def _build_id(file: Path) -> str:
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".note.gnu.build-id")
        assert isinstance(section, NoteSection)
        return str(next(section.iter_notes())["n_desc"])


def _functions(file: Path) -> list[FunctionSymbol]:
    with file.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return sorted(
            (
                FunctionSymbol(one.name, one["st_value"], one["st_value"] + one["st_size"])
                for one in table.iter_symbols()
                if one["st_info"]["type"] == "STT_FUNC" and one["st_size"]
            ),
            key=lambda one: (one.start, one.end, one.name),
        )
