"""Names a thread by the function that it runs for its life."""

import re
from collections.abc import Sequence
from itertools import islice

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.naming.bootstrap import is_threading
from gilscope.naming.event_loops import event_loop
from gilscope.naming.origins import Origin, origin_of
from gilscope.naming.paths import short_path
from gilscope.text.printable import label

__all__ = [
    "FRAMES_FOR_ROLE",
    "MAIN_THREAD",
    "job_role",
    "named_role",
    "resting_role",
    "serves_jobs",
    "telling_frames",
    "thread_role",
]

MAIN_THREAD = "MainThread"
FRAMES_FOR_ROLE = 8
"""How many of the outermost frames decide: three of `threading` and room for wrappers."""

_NUMBERED = re.compile(r"(.+?)[-_ ]?\d+")
_NOT_GIVEN = re.compile(r"(?:Thread|Dummy|python)")
"""How names begin that nobody has given: Python's own, and that of its program."""


def thread_role(frames: Sequence[Frame], *, is_main_thread: bool) -> str | None:
    """Return the role of a thread with these outermost *frames*, outermost first.

    It is ``function (file:line)`` with the line of the ``def``, as a label, and ``MainThread`` for
    the main one. A library's event loop is called so. None while the thread stands in
    `threading`'s own code: ask again later.
    """
    if is_main_thread:
        return MAIN_THREAD
    frame = _life_frame(frames[:FRAMES_FOR_ROLE])
    if frame is None:
        return None
    loop = None if _is_of_application(frame) else event_loop(frames)
    return _named(frame) if loop is None else f"{loop} event loop"


def serves_jobs(frames: Sequence[Frame]) -> bool:
    """Return whether the thread's own function is a library's, as in pools: jobs tell more.

    An event loop has more jobs than can be told, and is known as one.
    """
    frame = _life_frame(frames[:FRAMES_FOR_ROLE])
    return frame is not None and not _is_of_application(frame) and event_loop(frames) is None


def job_role(frames: Sequence[Frame]) -> str | None:
    """Return the role of a thread that `serves_jobs`, by the job that it does in these frames.

    It is the first function of the application that the library has called; None between jobs.
    """
    frame = next(filter(_is_of_application, frames), None)
    return None if frame is None else _named(frame)


def named_role(name: str) -> str | None:
    """Return the role of a thread by its *name*, without the number that each of a pool has.

    None where the name has none, or was not given to it.
    """
    numbered = None if _NOT_GIVEN.match(name) else _NUMBERED.fullmatch(name)
    return None if numbered is None else label(numbered[1])


def telling_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return those of *frames*, outermost first, that decide on a role.

    They are the first, and the first of the application behind those.
    """
    behind = filter(_is_of_application, frames[FRAMES_FOR_ROLE:])
    return (*frames[:FRAMES_FOR_ROLE], *islice(behind, 1))


def resting_role(frames: Sequence[Frame]) -> str | None:
    """Return the role of a thread that has stayed in `threading`'s own code for long.

    Such a thread runs a function that is written in C, or is a timer that has not run down: it is
    named by the `run` of its class. None for one that is not there.
    """
    run = _last_run(frames[:FRAMES_FOR_ROLE])
    return None if run is None else _named(frames[run])


def _is_of_application(frame: Frame) -> bool:
    return frame != UNKNOWN_FRAME and origin_of(frame) is Origin.APPLICATION


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
