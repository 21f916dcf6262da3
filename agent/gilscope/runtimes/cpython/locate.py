"""Finds the Python that a process runs."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from gilscope.elf.image import ElfError
from gilscope.errors import (
    GilscopeError,
    NotPermitted,
    NotPython,
    UnsupportedPython,
)
from gilscope.process import procfs
from gilscope.process.files.code_files import CodeFile, code_files, likely_interpreters, load_biases
from gilscope.process.files.mapped_file import open_mapped
from gilscope.process.view import ProcessView
from gilscope.runtimes.cpython.build import CPythonBuild
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.usage import Usage, usage_of
from gilscope.runtimes.others import refuse_other_pythons
from gilscope.text.printable import label, printable

__all__ = ["CPython", "locate"]


class CPython:
    """CPython with a GIL: a `gilscope.runtimes.base.Runtime`."""

    name = "cpython"

    def detect(self, view: ProcessView) -> CPythonBuild:
        """Return the interpreter that the process of *view* runs."""
        return locate(view)


def locate(view: ProcessView) -> CPythonBuild:
    """Return the interpreter that the process of *view* runs.

    Raises NotPython, NotPermitted, UnsupportedPython, NoGil or GilCodeNotFound.
    """
    pid = view.pid
    _refuse_deeper_namespace(view)
    program = ""
    with contextlib.suppress(OSError):
        program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    refusal: GilscopeError | None = None
    for files in likely_interpreters(code_files(view.mappings), program):
        found: list[CPythonBuild] = []
        for file in files:
            try:
                found += _located(pid, file)
            except (ElfError, NotPython):
                continue
            except GilscopeError as error:
                refusal = refusal or error
        if found:
            return _the_one_in_use(found)
    if refusal is not None:
        raise type(refusal)(f"process {pid}: {refusal}", remedy=refusal.remedy) from refusal
    try:
        refuse_other_pythons(view.command_line, [each.path for each in view.mappings])
    except UnsupportedPython as error:
        raise UnsupportedPython(f"process {pid}: {error}", remedy=error.remedy) from error
    command = label(" ".join(view.command_line[:1])) or "?"
    raise NotPython(f"process {pid} ({command}) does not map a Python interpreter")


def _located(pid: int, file: CodeFile) -> list[CPythonBuild]:
    """Return the interpreter that *file* holds, once for each time that it is loaded."""
    opened = open_mapped(pid, file.first)
    image = opened.image()
    interpreter = identify(image)
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


def _refuse_deeper_namespace(view: ProcessView) -> None:
    # The kernel names a process to a probe in the initial pid namespace or in the process' own.
    if len(view.status.namespace_pids) > 1 and not procfs.in_initial_pid_namespace():
        raise NotPermitted(
            f"process {view.pid} lives in a pid namespace inside gilscope's, which is not the "
            "host's",
            remedy="Run gilscope in the pid namespace of the process (docker: --pid "
            "container:NAME, Kubernetes: shareProcessNamespace) or of the host (--pid host, "
            "hostPID).",
        )
