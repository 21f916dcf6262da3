"""Reads the source lines of a process out of the files that the process itself sees.

What a traced program says of itself is not believed: it could name any file. Files are opened with
the rights of the process and inside its root directory, and only regular ones are read.
"""

import contextlib
import os
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Self

from gilscope.model.stack import Frame
from gilscope.process.files.notebook_cells import Cell, cell_hash, cells_in
from gilscope.process.files.regular_file import (
    look_up_in_root,
    names_in_folder,
    opened_for_reading,
)
from gilscope.process.files.source_text import lines_of, listing_of
from gilscope.system.syscall import set_file_ids, set_groups
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = ["SourceLines"]

_LARGEST_SOURCE = 4 << 20
_LARGEST_ARCHIVE = 256 << 20
_MOST_CONTENT = 64 << 20
"""Bytes, of all files of one reading: what it may cost at the end of a recording is bounded."""

_MOST_OF_NOTEBOOKS = 16 << 20
"""Bytes likewise: to look for a cell takes longer than to look for a line."""

_MOST_NAMES = 10_000
"""In the working directory, of which any may be a notebook."""

_START_TIME = 19
"""Index in /proc/PID/stat behind the name of the program."""


@dataclass(frozen=True, slots=True)
class _Rights:
    """As whom a process opens files."""

    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _View:
    """A process' own view of the file system, and what is needed to use it rightly."""

    pid: str
    root_fd: int
    cwd: str
    """As the process sees it."""
    rights: _Rights
    newest_ns: int
    """CLOCK_REALTIME: what has been changed after this may not be what the process has loaded."""


class SourceLines:
    """The source files of one process, also when it has ended.

    Where they cannot be had, no line is found.
    """

    def __init__(self, pid: int) -> None:
        """Hold on to the file system of *pid* as it is now."""
        self._open_files = contextlib.ExitStack()
        self._view: _View | None = None
        with contextlib.suppress(OSError):
            self._view = self._view_of(Path("/proc") / str(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file system."""
        self._view = None
        self._open_files.close()

    def read(self, frames: Iterable[Frame]) -> dict[tuple[str, int], str]:
        """Return the lines at which *frames* stood, by file and line number; see `lines_of`.

        A file that was changed after the process had started is left out, because its lines could
        be others. So is one that the process may not read. Cells of a notebook are looked for in
        the notebooks of the working directory, and told from other texts by their hash; the line
        has a comment that says which cell it is.
        """
        by_file: dict[str, list[Frame]] = {}
        for frame in frames:
            # Neither `<string>` nor `<frozen runpy>` is a file.
            if frame.line is not None and not frame.file.startswith("<"):
                by_file.setdefault(frame.file, []).append(frame)
        found = self._lines_of_cells(by_file)
        for file, content in self._contents(by_file):
            lines = lines_of(content, by_file[file])
            found |= {(file, number): line for number, line in lines.items()}
        return found

    def listings(self, numbers: Mapping[Frame, Sequence[int]]) -> dict[tuple[str, int], str]:
        """Return the lines of the functions of frames whose *numbers* are asked for, indented.

        What is left out, and why, is as in `read`; of a notebook's cells there are none.
        """
        by_file: dict[str, dict[Frame, Sequence[int]]] = {}
        for frame, those in numbers.items():
            if not frame.file.startswith("<"):
                by_file.setdefault(frame.file, {})[frame] = those
        found: dict[tuple[str, int], str] = {}
        for file, content in self._contents(by_file):
            lines = listing_of(content, by_file[file])
            found |= {(file, number): line for number, line in lines.items()}
        return found

    def _contents(self, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        left = _MOST_CONTENT
        for file in files:
            content = None if cell_hash(file) is not None else self._content(file)
            if content is None:
                continue
            left -= len(content)
            if left < 0:
                break
            yield file, content

    def _lines_of_cells(self, by_file: Mapping[str, Sequence[Frame]]) -> dict[tuple[str, int], str]:
        files = {cell_hash(file): file for file in by_file}
        files.pop(None, None)
        found: dict[tuple[str, int], str] = {}
        for name, content in self._notebooks() if files else ():
            for key, cell in cells_in(content, {key for key in files if key is not None}).items():
                file = files.pop(key)
                lines = lines_of(cell.content, by_file[file])
                found |= {
                    (file, number): f"{line}  {_comment(cell, name)}".rstrip()
                    for number, line in lines.items()
                }
        return found

    def _notebooks(self) -> Iterator[tuple[str, bytes]]:
        """Yield the notebooks in the working directory, by name.

        They may be newer than the process: they are saved while their kernel runs.
        """
        view = self._view
        if view is None:
            return
        left = _MOST_OF_NOTEBOOKS
        for name in _names(view, view.cwd):
            if not name.endswith(".ipynb"):
                continue
            content = None
            with (
                contextlib.suppress(OSError, UnicodeError),
                _opened(view, f"{view.cwd}/{name}", may_be_newer=True) as file,
            ):
                content = _limited(file)
            if content is not None:
                left -= len(content)
                if left < 0:
                    return
                yield name, content

    def _view_of(self, process: Path) -> _View:
        # The mounts below the root are gone with the last process of their namespace, unless
        # somebody holds on to that as well.
        self._held(process / "ns" / "mnt", os.O_RDONLY)
        root_fd = self._held(process / "root", os.O_PATH | os.O_DIRECTORY)
        root, cwd = str((process / "root").readlink()), str((process / "cwd").readlink())
        return _View(
            pid=process.name,
            root_fd=root_fd,
            cwd=cwd.removeprefix(root.rstrip("/")) or "/",
            rights=_rights((process / "status").read_text(errors="replace")),
            newest_ns=_newest_ns((process / "stat").read_text(errors="replace")),
        )

    def _held(self, path: Path, flags: int) -> int:
        fd = os.open(path, flags | os.O_CLOEXEC)
        self._open_files.callback(os.close, fd)
        return fd

    def _content(self, file: str) -> bytes | None:
        view = self._view
        if view is None or "\0" in file:
            return None
        path = file if file.startswith("/") else f"{view.cwd}/{file}"
        try:
            with _opened(view, path) as source:
                return _limited(source)
        except NotADirectoryError:
            return _from_archive(view, PurePosixPath(path))
        except (OSError, UnicodeError):
            return None


def _rights(status: str) -> _Rights:
    def numbers(name: str) -> list[int]:
        found = re.search(rf"(?m)^{name}:(.*)$", status)
        return [] if found is None else [int(word) for word in found[1].split()]

    # Real, effective, saved, and the one that counts for files.
    (*_, uid), (*_, gid) = numbers("Uid"), numbers("Gid")
    return _Rights(uid, gid, tuple(numbers("Groups")))


def _newest_ns(status: str) -> int:
    ticks = int(status.rpartition(")")[2].split()[_START_TIME])
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    boot_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    # The kernel rounds down. No Python has read a source in the first hundredth of its life.
    return boot_ns + (ticks + 1) * tick_ns


def _comment(cell: Cell, notebook: str) -> str:
    return f"# code cell {cell.number} of {printable(notebook)}" if cell.number else ""


def _names(view: _View, folder: str) -> Sequence[str]:
    """Return the names in *folder*, none where the process must not list it."""
    try:
        with _with_rights(view.rights):
            looked_up = look_up_in_root(view.root_fd, os.fsencode(folder), follows_links=True)
            try:
                return sorted(names_in_folder(looked_up, view.pid, _MOST_NAMES))
            finally:
                os.close(looked_up)
    except OSError:
        return ()


@contextlib.contextmanager
def _opened(view: _View, path: str, *, may_be_newer: bool = False) -> Iterator[IO[bytes]]:
    """Open what *path* is to the process; raises OSError where it must not be read."""
    with _with_rights(view.rights):
        name = path.encode("utf-8", "surrogateescape")
        looked_up = look_up_in_root(view.root_fd, name, follows_links=True)
        try:
            fd = opened_for_reading(looked_up, view.pid)
        finally:
            os.close(looked_up)
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor is no path
        status = os.fstat(fd)
        if not may_be_newer and max(status.st_mtime_ns, status.st_ctime_ns) > view.newest_ns:
            raise OSError(f"{path} is newer than the process")
        yield file


@contextlib.contextmanager
def _with_rights(rights: _Rights) -> Iterator[None]:
    """Open files as the process would. Nothing else is done meanwhile: no imports, no parsing."""
    before_groups = os.getgroups()
    # Who may not do this has no rights that the process could borrow either.
    with contextlib.suppress(OSError):
        set_groups(rights.groups)
    before = set_file_ids(rights.uid, rights.gid)
    try:
        yield
    finally:
        set_file_ids(*before)
        with contextlib.suppress(OSError):
            set_groups(before_groups)


def _limited(source: IO[bytes]) -> bytes | None:
    content = source.read(_LARGEST_SOURCE + 1)
    return content if len(content) <= _LARGEST_SOURCE else None


def _from_archive(view: _View, path: PurePosixPath) -> bytes | None:
    """Return the bytes of a module that was imported from a zip archive."""
    for parent in path.parents:
        try:
            with _opened(view, str(parent)) as file:
                if os.fstat(file.fileno()).st_size > _LARGEST_ARCHIVE:
                    return None
                with (
                    zipfile.ZipFile(file) as archive,
                    archive.open(str(path.relative_to(parent))) as member,
                ):
                    return _limited(member)
        except NotADirectoryError:
            continue
        except Exception:  # noqa: BLE001 - somebody else's archive can be wrong in any way
            return None
    return None
