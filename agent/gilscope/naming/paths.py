"""Shortens source paths so that one file has one name on every host and after every restart."""

import re
import sys

__all__ = ["is_installed", "is_standard_library", "short_path"]

# The last such directory counts: an environment may live below another one. `python311.zip` is how
# a zipped standard library looks, `python3/dist-packages` is Debian's own.
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_STANDARD_LIBRARY = re.compile(
    r".*/lib(?:64)?/(?:python(?:2\.7|3\.\d+t?)/|python(?:27|3\d+)\.zip/|pypy3\.\d+/)|"
    r".*/lib-python/(?:2\.7|3)/"
)

# PyInstaller freezes modules under their names below the import path alone. Since CPython 3.9 the
# script that a program runs has no such name, wherever it was started from.
_STANDARD_MODULES = sys.stdlib_module_names | {"annotationlib", "compression"}

# The kernel of a notebook names a cell by a number that is made of its text; older ones, and
# IPython in a terminal, by how many had been executed.
_CELL = re.compile(r"(?:.*/)?ipykernel_\d+/(\d+)\.py")
_NUMBERED_CELL = re.compile(r"<ipython-input-(\d+)-[0-9a-f]+>")


def is_installed(path: str) -> bool:
    """Return whether *path* is a module of a library that was installed."""
    return _PACKAGES.match(path) is not None


def is_standard_library(path: str) -> bool:
    """Return whether *path* is a module that comes with Python itself."""
    if _STANDARD_LIBRARY.match(path) is not None:
        return not is_installed(path)
    return path.endswith(".py") and path.partition("/")[0].removesuffix(".py") in _STANDARD_MODULES


def short_path(path: str) -> str:
    """Return the name by which people know a source file, wherever the program was started.

    A module of a library is named from where `import` finds it, any other file by its last
    component. Names that are no path, such as ``<string>`` or ``<frozen runpy>``, stay as they are,
    but for those that cells of notebooks have.
    """
    cell, numbered_cell = _CELL.fullmatch(path), _NUMBERED_CELL.fullmatch(path)
    if cell:
        return f"notebook cell {cell[1]}"
    if numbered_cell:
        return f"cell In[{numbered_cell[1]}]"
    for library in (_PACKAGES, _STANDARD_LIBRARY):
        match = library.match(path)
        if match:
            return path[match.end() :]
    if not path.startswith("/"):
        return re.sub(r"^(?:\./+)+", "", path)
    return path.rsplit("/", 1)[-1]
