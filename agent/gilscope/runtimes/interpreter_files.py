"""Searches the files that a process has mapped as code for an interpreter."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gilscope.elf.image import ElfError
from gilscope.errors import GilscopeError, NotPermitted, NotPython
from gilscope.process import procfs
from gilscope.process.files.code_files import CodeFile, code_files, likely_interpreters
from gilscope.process.view import ProcessView
from gilscope.text.printable import label

__all__ = ["builds_in"]

_Build = TypeVar("_Build")


def builds_in(view: ProcessView, located: Callable[[int, CodeFile], list[_Build]]) -> list[_Build]:
    """Return what *located* finds in one of the files of the process of *view*, once a loaded copy.

    It is given the pid and the file, and raises NotPython or ElfError for one that holds no such
    interpreter, anything else for one that may not be traced. Raises the first of those, NotPython
    where there is none, or NotPermitted.
    """
    pid = view.pid
    _refuse_deeper_namespace(view)
    program = ""
    with contextlib.suppress(OSError):
        program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    refusal: GilscopeError | None = None
    for files in likely_interpreters(code_files(view.mappings), program):
        found: list[_Build] = []
        for file in files:
            try:
                found += located(pid, file)
            except (ElfError, NotPython):
                continue
            except GilscopeError as error:
                refusal = refusal or error
        if found:
            return found
    if refusal is not None:
        raise type(refusal)(f"process {pid}: {refusal}", remedy=refusal.remedy) from refusal
    command = label(" ".join(view.command_line[:1])) or "?"
    raise NotPython(f"process {pid} ({command}) does not map a Python interpreter")


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
