"""Finds the Python that a process runs."""

from collections.abc import Sequence
from functools import partial

from gilscope.errors import UnsupportedPython, without_gil
from gilscope.process.files.code_files import CodeFile, load_biases
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.files.regular_file import FileImage
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.build import CPythonBuild
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.runtime import is_gil_off, runtime_of
from gilscope.runtimes.cpython.usage import Usage, usage_of
from gilscope.runtimes.interpreter_files import LikelyFiles, builds_in
from gilscope.text.printable import printable

__all__ = ["CPython", "find_cpython"]


class CPython:
    """CPython with a GIL: a `gilscope.runtimes.base.Runtime`."""

    name = "cpython"

    def detect(self, files: LikelyFiles) -> CPythonBuild:
        """Return the interpreter that the process that has mapped *files* runs.

        Raises NotPython, NotPermitted, UnsupportedPython, NoGil or GilCodeNotFound.
        """
        build = find_cpython(files)
        if build.interpreter.is_free_threaded and _does_without_gil(build):
            raise without_gil(build.pid, build.version)
        return build


def find_cpython(files: LikelyFiles) -> CPythonBuild:
    """Return the CPython that the process that has mapped *files* runs, with a GIL or without.

    Raises NotPython, NotPermitted, UnsupportedPython or GilCodeNotFound.
    """
    return _the_one_in_use(builds_in(files, partial(_located, files.view.pid)))


def _does_without_gil(build: CPythonBuild) -> bool:
    """Return whether it is known to; one that is not initialised yet may have one."""
    try:
        with GuardedMemory(build.pid, [build.file.mapping]) as memory:
            runtime = runtime_of(memory, build.interpreter, build.load_bias)
            return bool(is_gil_off(runtime))
    except (OSError, TornRead):
        return False  # whoever traces it has to read it again, and says what is the matter


def _located(pid: int, file: CodeFile, opened: MappedFile, image: FileImage) -> list[CPythonBuild]:
    """Return the interpreter that *file* holds, once for each time that it is loaded."""
    interpreter = opened.held.facts.known("CPython", lambda: identify(image))
    return [
        CPythonBuild(pid, opened, interpreter, image.build_id, bias)
        for bias in load_biases(image.segments, file)
    ]


def _the_one_in_use(found: Sequence[CPythonBuild]) -> CPythonBuild:
    if len(found) == 1:
        return found[0]
    # A library that somebody has loaded by mistake, or for a part of the program.
    usages = [
        usage_of(each.pid, each.interpreter, each.file.mapping, each.load_bias) for each in found
    ]
    best = max(usages)
    used = [each for each, usage in zip(found, usages, strict=True) if usage is best]
    if len(used) > 1 and best is not Usage.NONE:
        names = " and ".join(
            f"CPython {each.interpreter.version} in {printable(each.file.mapping.path)}"
            for each in used
        )
        raise UnsupportedPython(
            f"process {used[0].pid} runs several Pythons at once: {names}",
            remedy="gilscope traces one Python in a process, and does not choose between them.",
        )
    return used[0]
