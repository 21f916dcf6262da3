"""Reads, from outside and without stopping it, the whole Python stack of a thread."""

from dataclasses import replace

from gilscope.model.stack import UNKNOWN_FRAME, Stack, StackState
from gilscope.process.memory import ProcessMemory
from gilscope.process.remote_read import TornRead
from gilscope.process.snapshot import Snapshot
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.frames import innermost_places
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["StackWalk"]

_NO_PYTHON = Stack((), StackState.NO_PYTHON)


class StackWalk:
    """Reads stacks of one process. Has names of code of its own: one thread may use it.

    The thread runs on meanwhile. Frames lie close together and are read a page at a time, so that
    a stack is of about one instant.
    """

    def __init__(self, memory: ProcessMemory, runtime: Runtime, deepest: int) -> None:
        """Read *deepest* frames of a stack at the most."""
        self._memory = memory
        self._runtime = runtime
        self._deepest = deepest
        self._code = CodeReader(runtime)

    def stack(self, tstate: int) -> Stack:
        """Return the stack of the thread whose state is at *tstate*.

        Raises TornRead for a chain that does not end where a thread begins, or leads to what is no
        code object: another try may succeed.
        """
        return self.stack_and_position(tstate)[0]

    def stack_and_position(self, tstate: int) -> tuple[Stack, int]:
        """Return the same, and a number that is the same for the same instructions."""
        runtime = replace(self._runtime, memory=Snapshot(self._memory))
        places, is_whole = innermost_places(runtime, tstate, self._deepest)
        if not places:
            return _NO_PYTHON, 0
        frames = self._code.current_frames(places)
        if UNKNOWN_FRAME in frames:
            raise TornRead("a frame without code")
        state = StackState.WHOLE if is_whole else StackState.CUT
        return Stack(frames, state), hash(tuple(places))
