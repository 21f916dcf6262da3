"""Tells whose code a frame is."""

from enum import IntEnum

from gilscope.model.stack import Frame
from gilscope.naming.bootstrap import is_threading
from gilscope.naming.paths import is_installed, is_standard_library

__all__ = ["Origin", "is_made", "origin_of"]

_BOOTSTRAP_FUNCTIONS = {"_bootstrap", "_bootstrap_inner", "run"} | {
    "__bootstrap",
    "__bootstrap_inner",
}


class Origin(IntEnum):
    """Whose code a frame is. The script of the report goes by the numbers."""

    APPLICATION = 0
    LIBRARY = 1
    """Python's own, or installed."""
    BOOTSTRAP = 2
    """Where `threading` begins every thread."""


def origin_of(frame: Frame) -> Origin:
    """Return whose code *frame* is, by its file and function."""
    file = frame.file
    is_standard = is_standard_library(file) or file.startswith(("<frozen ", "<builtin>/"))
    if is_threading(frame) and frame.function.rpartition(".")[2] in _BOOTSTRAP_FUNCTIONS:
        return Origin.BOOTSTRAP
    if is_standard or is_threading(frame) or is_installed(file) or _is_made_by_library(frame):
        return Origin.LIBRARY
    return Origin.APPLICATION


def is_made(frame: Frame) -> bool:
    """Return whether *frame* runs code that was made at run time and is in no file."""
    # The cells of a notebook were named like that by older kernels.
    return frame.file.startswith("<") and not frame.file.startswith("<ipython-input-")


def _is_made_by_library(frame: Frame) -> bool:
    # As `namedtuple` and `dataclass` do.
    name = frame.function.rpartition(".")[2]
    return is_made(frame) and (name == "<lambda>" or name.startswith("__"))
