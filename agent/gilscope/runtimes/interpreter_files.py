"""Searches the files that a process has mapped as code for an interpreter."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

from gilscope.elf.image import ElfError
from gilscope.errors import GilscopeError, NotPermitted, NotPython
from gilscope.process import procfs
from gilscope.process.files.code_files import CodeFile, code_files, likely_interpreters
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.files.regular_file import FileImage
from gilscope.process.view import ProcessView
from gilscope.text.printable import label

__all__ = ["LikelyFiles", "builds_in"]

_Build = TypeVar("_Build")


class LikelyFiles:
    """The files of one process that may hold an interpreter, each opened and read once.

    All runtimes are asked about them in turn, and most processes run none of these. When the
    context ends, they are closed, but for those that are kept.
    """

    def __init__(self, view: ProcessView) -> None:
        """Open nothing yet of the process of *view*."""
        self.view = view
        self._opened: dict[CodeFile, tuple[MappedFile, FileImage] | Exception] = {}
        self._kept: list[MappedFile] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is not kept, whoever still refers to it: refusals hold their frames."""
        for known in self._opened.values():
            if not isinstance(known, Exception) and known[0] not in self._kept:
                known[0].close()
        self._opened.clear()

    def likely(self) -> tuple[Sequence[CodeFile], Sequence[CodeFile]]:
        """Return the likely ones, then the unlikely ones."""
        program = ""
        with contextlib.suppress(OSError):
            program = str(Path(f"/proc/{self.view.pid}/exe").readlink())
        return likely_interpreters(
            code_files(self.view.mappings), program.removesuffix(" (deleted)")
        )

    def opened(self, file: CodeFile) -> tuple[MappedFile, FileImage]:
        """Return *file* and what is in it; raises what `open_mapped` raises, or ElfError."""
        if file not in self._opened:
            self._opened[file] = self._open(file)
        known = self._opened[file]
        if isinstance(known, Exception):
            raise known
        return known

    def keep(self, file: MappedFile) -> None:
        """Leave *file* open when the context ends."""
        self._kept.append(file)

    def _open(self, file: CodeFile) -> tuple[MappedFile, FileImage] | Exception:
        with contextlib.ExitStack() as closing:
            try:
                opened = closing.enter_context(
                    contextlib.closing(open_mapped(self.view.pid, file.first))
                )
                image = opened.image()
            except (ElfError, GilscopeError) as error:
                return error.with_traceback(None)
            closing.pop_all()
            return opened, image


_Located = Callable[[CodeFile, MappedFile, FileImage], list[_Build]]


def builds_in(files: LikelyFiles, located: _Located[_Build]) -> list[_Build]:
    """Return what *located* finds in one of *files*, once a loaded copy.

    It raises NotPython or ElfError for one that holds no such interpreter, anything else for one
    that may not be traced. Raises the first of those, NotPython where there is none, or
    NotPermitted.
    """
    view, pid = files.view, files.view.pid
    _refuse_deeper_namespace(view)
    refusal: GilscopeError | None = None
    for group in files.likely():
        found: list[_Build] = []
        for file in group:
            try:
                found += located(file, *files.opened(file))
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
