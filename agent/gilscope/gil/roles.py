"""Names a thread by the function that it runs for its life."""

from collections.abc import Sequence

from gilscope.gil.paths import is_standard_library, short_path
from gilscope.model import Frame

__all__ = ["FRAMES_FOR_ROLE", "MAIN_THREAD", "thread_role"]

MAIN_THREAD = "MainThread"
FRAMES_FOR_ROLE = 8
"""How many of the outermost frames decide: three of `threading` and room for wrappers."""


def thread_role(
    frames: Sequence[Frame], *, is_main_thread: bool, cwd: str | None = None
) -> str | None:
    """Return the role of a thread with these outermost *frames*, outermost first.

    It is ``function (file:line)`` with the line of the ``def``, and ``MainThread`` for the main
    one. None while the thread stands in `threading`'s own code: ask again later.
    """
    if is_main_thread:
        return MAIN_THREAD
    frame = _life_frame(frames[:FRAMES_FOR_ROLE])
    if frame is None:
        return None
    return f"{frame.function} ({short_path(frame.file, cwd)}:{frame.first_line})"


def _life_frame(frames: Sequence[Frame]) -> Frame | None:
    # Tracing libraries replace Thread.run with a function of theirs that calls the original. What
    # stands above the original is what the thread is for, not the wrapper that all threads share.
    for index in reversed(range(len(frames))):
        if _is_threading(frames[index]) and _plain_name(frames[index]) == "run":
            return _first_foreign(frames[index + 1 :])
    return _first_foreign(frames)


def _first_foreign(frames: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in frames if not _is_threading(frame)), None)


def _is_threading(frame: Frame) -> bool:
    return short_path(frame.file, None) == "threading.py" and (
        is_standard_library(frame.file) or frame.file == "threading.py"
    )


def _plain_name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2]
