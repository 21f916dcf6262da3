"""The runtimes whose locks gilscope traces, and which of them a process runs."""

from typing import Final

from gilscope.errors import NotPermitted, NotPython, UnsupportedPython
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.view import ProcessView, view_of
from gilscope.runtimes.base import Build, Runtime
from gilscope.runtimes.cpython.locate import CPython
from gilscope.runtimes.cpython27.locate import CPython27
from gilscope.runtimes.interpreter_files import LikelyFiles
from gilscope.runtimes.others import refuse_other_pythons
from gilscope.runtimes.pypy.locate import PyPy

__all__ = ["RUNTIMES", "detect", "open_memory"]

RUNTIMES: Final[tuple[Runtime, ...]] = (CPython(), PyPy(), CPython27())
"""In the order in which they are asked."""


def detect(view: ProcessView) -> Build:
    """Return the runtime that the process of *view* runs; raises what `Runtime.detect` raises."""
    refusals: list[NotPython] = []
    with LikelyFiles(view) as files:
        for runtime in RUNTIMES:
            try:
                build = runtime.detect(files)
            except NotPython as refusal:
                refusals.append(refusal)
            else:
                files.keep(build.file)
                return build
    try:
        refuse_other_pythons(view.command_line, [each.path for each in view.mappings])
    except UnsupportedPython as error:
        raise UnsupportedPython(f"process {view.pid}: {error}", remedy=error.remedy) from error
    raise refusals[0]


def open_memory(pid: int) -> GuardedMemory:
    """Return the memory of the program that *pid* runs; raises NotPython or NotPermitted."""
    try:
        return GuardedMemory(pid)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except PermissionError as error:
        # A process that is no Python is none of gilscope's business, permitted or not.
        detect(view_of(pid)).close()
        raise NotPermitted(
            f"not permitted to read the memory of process {pid} ({error.strerror})"
        ) from error
