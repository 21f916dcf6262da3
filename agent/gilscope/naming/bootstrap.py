"""Knows the frames of the module `threading`, in which every thread of its begins."""

from gilscope.model.stack import Frame
from gilscope.naming.paths import is_standard_library, short_path

__all__ = ["is_threading"]


def is_threading(frame: Frame) -> bool:
    """Return whether *frame* runs code of the module `threading` that comes with Python."""
    return short_path(frame.file) == "threading.py" and (
        is_standard_library(frame.file) or frame.file == "threading.py"
    )
