"""Finds the CPython 2.7 that a process runs, and the C library that it waits in."""

import contextlib
import re
from functools import partial
from typing import Final

from gilscope.errors import NotPython, UnsupportedPython
from gilscope.process.files.code_files import CodeFile, code_files, load_biases
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.files.regular_file import FileImage
from gilscope.process.view import ProcessView
from gilscope.runtimes.cpython27.build import CPython27Build
from gilscope.runtimes.cpython27.detect import identify
from gilscope.runtimes.interpreter_files import LikelyFiles, builds_in

__all__ = ["CPython27"]

_LIBC: Final = re.compile(r"(?:libpthread|libc|ld-musl)[-.][^/]*$")
_WAIT: Final = "sem_wait"


class CPython27:
    """CPython 2.7: a `gilscope.runtimes.base.Runtime`."""

    name = "cpython27"

    def detect(self, files: LikelyFiles) -> CPython27Build:
        """Return the interpreter that the process that has mapped *files* runs."""
        view = files.view
        found = builds_in(files, partial(_located, view))
        if len(found) > 1:
            raise UnsupportedPython(
                f"process {view.pid} has loaded CPython 2.7 {len(found)} times",
                remedy="gilscope traces one Python in a process, and does not choose between them.",
            )
        return found[0]


def _located(
    view: ProcessView, file: CodeFile, opened: MappedFile, image: FileImage
) -> list[CPython27Build]:
    interpreter = identify(image)
    libc = _libc(view)
    return [
        CPython27Build(view.pid, opened, interpreter, image.build_id, bias, libc)
        for bias in load_biases(image.segments, file)
    ]


def _libc(view: ProcessView) -> CodeFile:
    """Return the file that `sem_wait` is in; raises NotPython where none is mapped, or not yet."""
    for file in code_files(view.mappings):
        if _LIBC.search(file.path):
            with contextlib.closing(open_mapped(view.pid, file.first)) as opened:
                if opened.image().default_version_symbol(_WAIT) is not None:
                    return file
    raise NotPython(f"process {view.pid} maps no C library with {_WAIT}")
