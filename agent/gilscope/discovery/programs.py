"""Programs that are known not to be traced, so that their files are not read again."""

from collections.abc import Iterable
from pathlib import Path

from gilscope.model.transactions import Library
from gilscope.process import procfs

__all__ = ["PYTHON_NAMES", "Programs"]

PYTHON_NAMES = (b"python", b"pypy")

_LIBRARY_NAMES = {Library.RPYTHON: PYTHON_NAMES, Library.LIBITM: (b"libitm",)}
"""What makes a program worth another check that has nothing of the kind in its own file."""


_Program = tuple[int, int, int]


class Programs:
    """Executables that hold no Python: hosts run thousands of processes from a few hundred."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        """Take those for foreign in which none of *libraries* was found either."""
        self._names = [name for library in libraries for name in _LIBRARY_NAMES[library]]
        self._foreign: set[_Program] = set()

    def identity(self, pid: int) -> _Program | None:
        """Return what tells the executable of *pid* from every other file, or None."""
        try:
            status = Path(f"/proc/{pid}/exe").stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def is_foreign(self, program: _Program | None, pid: int) -> bool:
        """Return whether *pid* cannot be a Python, without reading the executable again."""
        return program in self._foreign and not procfs.maps_mention(pid, self._names)

    def remember_foreign(self, program: _Program | None) -> None:
        """Note that *program* itself holds no Python; a library that it maps still may."""
        if program is not None:
            self._foreign.add(program)
