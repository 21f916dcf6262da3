"""Finds out which thread of a live PyPy has which role."""

from gilscope.model.stack import Frame
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.thread_roles import Roles
from gilscope.runtimes.pypy.stacks import StackReader
from gilscope.runtimes.pypy.threads import PyPyThread, PyPyThreads

__all__ = ["PyPyRoles"]


class PyPyRoles(Roles[PyPyThread]):
    """The roles of one process' threads, by the outermost frames of their stacks."""

    def __init__(self, pid: int, threads: PyPyThreads, stacks: StackReader) -> None:
        super().__init__(pid, threads)
        self._stacks = stacks

    def _frames(self, thread: PyPyThread, count: int) -> list[Frame]:
        try:
            stack, _ = self._stacks.stack(thread)
        except (TornRead, OSError):
            return []
        return list(stack.frames[::-1][:count])
