"""Names the places and threads that stacks tell of."""

from collections.abc import Hashable
from itertools import takewhile

from gilscope.model.stack import UNKNOWN_FRAME, Frame, Stack, StackState
from gilscope.naming.bootstrap import is_threading
from gilscope.naming.paths import is_standard_library, short_path
from gilscope.naming.roles import (
    FRAMES_FOR_ROLE,
    job_role,
    resting_role,
    serves_jobs,
    thread_role,
)

__all__ = ["ENTERS_PYTHON", "IN_WORDS", "SiteNames", "place_of", "role_of"]

IN_WORDS = {
    StackState.CUT: "deeper than what is noted",
    StackState.TORN: "stack changed while being read",
    StackState.NO_PYTHON: "no Python code",
    StackState.UNKNOWN: "unknown",
}
"""What stands in place of the frames that a stack of a recording lacks."""

ENTERS_PYTHON = "the thread enters Python: from C, or at its start"
"""What it means that a waiter runs no Python code."""

_LIBRARIES = "(libraries alone)"

_MODULE = "<module>"
_RUNS_MODULES = "<frozen runpy>"
"""Where `python -m` begins; a module of the standard library like any other up to 3.10."""
_AWAITS_THREADS = "_shutdown"
"""Of `threading`: in it the main thread ends."""
_STARTING = "starting"


class SiteNames:
    """Names of the sites of one process. A name, once given, stays.

    It is as short as it can be without being another file's name already.
    """

    def __init__(self) -> None:
        self._by_file: dict[str, str] = {}
        self._files: dict[str, str] = {}

    def path(self, file: str) -> str:
        """Return the name of the source file *file*."""
        known = self._by_file.get(file)
        if known is None:
            known = self._by_file[file] = self._new(file)
            self._files[known] = file
        return known

    def site(self, frame: Frame) -> str:
        """Return ``function (file:line)`` with the line that was executing."""
        if frame == UNKNOWN_FRAME:
            return frame.function
        line = frame.first_line if frame.line is None else frame.line
        return f"{frame.function} ({self.path(frame.file)}:{line})"

    def innermost(self, stack: Stack) -> str:
        """Return the site at which *stack* ends, or in words why there is none."""
        if stack.frames:
            return self.site(stack.frames[0])
        return IN_WORDS.get(stack.state, IN_WORDS[StackState.UNKNOWN])

    def owner(self, frame: Frame | None, stack: Stack) -> str:
        """Return the site of *frame*, which is of the application, or in words why there is none.

        *stack* is the one that was searched for it.
        """
        if frame is not None:
            return self.site(frame)
        return _LIBRARIES if stack.frames else f"({self.innermost(stack)})"

    def _new(self, file: str) -> str:
        name = short_path(file)
        # The name of a notebook's cell is no part of its file's.
        folder = file.removesuffix(name) if file.endswith(name) else file.rpartition("/")[0]
        parents = folder.rstrip("/").split("/")
        if parents == [""] and not file.startswith("/"):
            parents = ["."]
        while name in self._files and parents:
            name = f"{parents.pop()}/{name}"
        return name


def place_of(stack: Stack) -> Hashable:
    """Return what is equal for stacks that stand in the same function, whatever called it."""
    if not stack.frames:
        return stack.state
    frame = stack.frames[0]
    # Of a torn stack it is only known that the function was called on the way to the place.
    return (frame.function, frame.file, frame.first_line, stack.state is StackState.TORN)


def role_of(stack: Stack) -> str:
    """Return the role of the thread that stood in *stack*, or in words why it cannot be told.

    The main thread is known by where its stack begins: in the program's module. It is not known by
    that in a process that was forked by another thread, and where Python is embedded.
    """
    if stack.state is StackState.CUT or not stack.frames:
        return IN_WORDS[stack.state]
    frames = stack.frames[: -FRAMES_FOR_ROLE - 1 : -1]
    known = list(takewhile(lambda frame: frame != UNKNOWN_FRAME, frames))
    is_main_thread = _begins_program(frames[0])
    if not is_main_thread and serves_jobs(known):
        job = job_role(stack.frames[::-1])
        if job is not None:
            return job
    role = thread_role(known, is_main_thread=is_main_thread)
    if role is None and len(known) < len(frames):
        return IN_WORDS[StackState.UNKNOWN]
    return role or resting_role(known) or _STARTING


def _begins_program(outermost: Frame) -> bool:
    if is_threading(outermost):
        return outermost.function == _AWAITS_THREADS
    return outermost.function == _MODULE or _is_runpy(outermost.file)


def _is_runpy(file: str) -> bool:
    return file == _RUNS_MODULES or (is_standard_library(file) and short_path(file) == "runpy.py")
