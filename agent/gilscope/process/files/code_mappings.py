"""Which file the code at an address in a process comes from."""

import contextlib
import time
from collections.abc import Sequence

from gilscope.process import procfs
from gilscope.process.files.code_files import CodeFile, code_files

__all__ = ["CodeMappings"]

_READ_AGAIN_S = 1.0
"""A process may make code as it runs: its mappings are not read for each address of that."""


class CodeMappings:
    """The files that one process has mapped as code, read again when an address is in none."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._files: Sequence[CodeFile] = ()
        self._read_again_s = 0.0

    def file(self, address: int) -> CodeFile | None:
        """Return the file that is mapped at *address*; None: none is, or it cannot be read."""
        found = _holding(self._files, address)
        if found is None and time.monotonic() >= self._read_again_s:
            self._read_again_s = time.monotonic() + _READ_AGAIN_S
            with contextlib.suppress(OSError):
                self._files = code_files(procfs.read_maps(self._pid))
            found = _holding(self._files, address)
        return found


def _holding(files: Sequence[CodeFile], address: int) -> CodeFile | None:
    return next(
        (
            file
            for file in files
            for mapping in file.executable
            if mapping.start <= address < mapping.end
        ),
        None,
    )
