"""Names a thread by the function that it runs for its life."""

from collections.abc import Sequence

from gilscope.model.stack import Frame
from gilscope.naming.paths import is_standard_library, short_path
from gilscope.text.printable import label

__all__ = ["FRAMES_FOR_ROLE", "MAIN_THREAD", "is_threading", "resting_role", "thread_role"]

MAIN_THREAD = "MainThread"
FRAMES_FOR_ROLE = 8
"""How many of the outermost frames decide: three of `threading` and room for wrappers."""


def thread_role(frames: Sequence[Frame], *, is_main_thread: bool) -> str | None:
    """Return the role of a thread with these outermost *frames*, outermost first.

    It is ``function (file:line)`` with the line of the ``def``, as a label, and ``MainThread`` for
    the main one. None while the thread stands in `threading`'s own code: ask again later.
    """
    if is_main_thread:
        return MAIN_THREAD
    frame = _life_frame(frames[:FRAMES_FOR_ROLE])
    return None if frame is None else _named(frame)


def resting_role(frames: Sequence[Frame]) -> str | None:
    """Return the role of a thread that has stayed in `threading`'s own code for long.

    Such a thread runs a function that is written in C, or is a timer that has not run down: it is
    named by the `run` of its class. None for one that is not there.
    """
    run = _last_run(frames[:FRAMES_FOR_ROLE])
    return None if run is None else _named(frames[run])


def is_threading(frame: Frame) -> bool:
    """Return whether *frame* runs code of the module `threading` that comes with Python."""
    return short_path(frame.file) == "threading.py" and (
        is_standard_library(frame.file) or frame.file == "threading.py"
    )


def _life_frame(frames: Sequence[Frame]) -> Frame | None:
    # Tracing libraries replace Thread.run with a function of theirs that calls the original. What
    # stands above the original is what the thread is for, not the wrapper that all threads share.
    run = _last_run(frames)
    above = frames if run is None else frames[run + 1 :]
    return next((frame for frame in above if not is_threading(frame)), None)


def _last_run(frames: Sequence[Frame]) -> int | None:
    for index in reversed(range(len(frames))):
        if is_threading(frames[index]) and _plain_name(frames[index]) == "run":
            return index
    return None


def _plain_name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2]


def _named(frame: Frame) -> str:
    # Not from the working directory: started from elsewhere, a thread keeps its role.
    return label(f"{frame.function} ({short_path(frame.file)}:{frame.first_line})")
