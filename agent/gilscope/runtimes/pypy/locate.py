"""Finds the PyPy that a process runs."""

from functools import partial
from typing import Final

from gilscope.errors import NotPython, UnsupportedPython
from gilscope.process.files.code_files import CodeFile, code_files, load_biases
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.files.regular_file import FileImage
from gilscope.runtimes.interpreter_files import LikelyFiles, builds_in
from gilscope.runtimes.pypy.build import PyPyBuild

__all__ = ["PyPy"]

_NAME: Final = "pypy"
"""In the name of its library, or of the program where that is one file."""
_MARKER: Final = "pypy_main_startup"


class PyPy:
    """PyPy 7.3.2 and later: a `gilscope.runtimes.base.Runtime`."""

    name = "pypy"

    def detect(self, files: LikelyFiles) -> PyPyBuild:
        """Return the PyPy that the process that has mapped *files* runs."""
        view = files.view
        # No file is opened of a process that is none.
        if not any(_NAME in file.path.rpartition("/")[2] for file in code_files(view.mappings)):
            raise NotPython(f"process {view.pid} maps no PyPy")
        found = builds_in(files, partial(_located, view.pid))
        if len(found) > 1:
            raise UnsupportedPython(
                f"process {view.pid} has loaded PyPy {len(found)} times",
                remedy="gilscope traces one Python in a process, and does not choose between them.",
            )
        return found[0]


def _located(pid: int, file: CodeFile, opened: MappedFile, image: FileImage) -> list[PyPyBuild]:
    if image.default_version_symbol(_MARKER) is None:
        raise NotPython(f"no PyPy: the file does not define {_MARKER}")
    return [
        PyPyBuild(pid, opened, image.build_id, bias) for bias in load_biases(image.segments, file)
    ]
