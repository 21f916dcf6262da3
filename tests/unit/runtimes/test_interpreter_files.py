"""The files of a process that all runtimes are asked about: here of this very one."""

import os
import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError
from gilscope.errors import NotPython
from gilscope.process.files import mapped_file
from gilscope.process.files.code_files import CodeFile
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.files.regular_file import FileImage
from gilscope.process.procfs import Mapping
from gilscope.process.view import view_of
from gilscope.runtimes import interpreter_files
from gilscope.runtimes.interpreter_files import LikelyFiles, builds_in
from gilscope.runtimes.registry import RUNTIMES, detect


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def open_mapped(pid: int, mapping: Mapping) -> MappedFile:
        opened.append(mapping.path)
        return mapped_file.open_mapped(pid, mapping)

    monkeypatch.setattr(interpreter_files, "open_mapped", open_mapped)
    return opened


def test_each_file_is_opened_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of a process that runs none of the runtimes, as most processes do.
    """
    opened = _counted(monkeypatch)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        with LikelyFiles(view_of(process.pid)) as files:
            for runtime in RUNTIMES:
                with pytest.raises(NotPython):
                    runtime.detect(files)

    assert opened
    assert sorted(set(opened)) == sorted(opened)


def test_what_cannot_be_opened_is_refused_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In the same words, and without another try.
    """
    tried: list[str] = []

    def refuse(_pid: int, mapping: Mapping) -> MappedFile:
        tried.append(mapping.path)
        raise NotPython(f"{mapping.path} is gone")

    monkeypatch.setattr(interpreter_files, "open_mapped", refuse)
    with LikelyFiles(view_of(os.getpid())) as files:
        first = files.likely()[0][0]
        for _ in range(2):
            with pytest.raises(NotPython, match="is gone"):
                files.opened(first)

    assert [first.path] == tried


def _descriptors() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


@pytest.mark.usefixtures("nothing_is_collected")
def test_nothing_stays_open_of_a_process_that_is_none() -> None:
    """
    Also while the refusal is held, which holds the frames that it came through.
    """
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        before = _descriptors()
        view = view_of(process.pid)
        with pytest.raises(NotPython) as refused:
            detect(view)
        assert before == _descriptors()
        assert refused.value is not None
        process.communicate()


@pytest.mark.usefixtures("nothing_is_collected")
def test_what_holds_no_program_does_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A file that is opened, and then is none that can be read.
    """
    opened: list[MappedFile] = []

    def open_mapped(pid: int, mapping: Mapping) -> MappedFile:
        opened.append(mapped_file.open_mapped(pid, mapping))
        return opened[-1]

    def image(_self: MappedFile) -> FileImage:
        raise ElfError("no ELF file")

    monkeypatch.setattr(interpreter_files, "open_mapped", open_mapped)
    monkeypatch.setattr(MappedFile, "image", image)
    before = _descriptors()
    with LikelyFiles(view_of(os.getpid())) as files:
        with pytest.raises(ElfError):
            files.opened(files.likely()[0][0])
        assert 1 == len(opened)
        assert before == _descriptors()


def test_what_is_kept_stays_open() -> None:
    """
    The file of the interpreter that was found; all others are closed.
    """
    with LikelyFiles(view_of(os.getpid())) as files:
        first, second = (files.opened(each)[0] for group in files.likely() for each in group[:1])
        files.keep(first)

    assert first.path
    with pytest.raises(ValueError, match="not held"):
        assert second.path


def test_a_file_that_holds_what_is_searched_for() -> None:
    """
    The search ends with the likely files, of which it is given content and file.
    """

    def located(file: CodeFile, opened: MappedFile, image: FileImage) -> list[str]:
        if image.default_version_symbol("PyEval_RestoreThread") is None:
            raise NotPython("none")
        assert file.first == opened.mapping
        return [file.path]

    with LikelyFiles(view_of(os.getpid())) as files:
        found = builds_in(files, located)
    assert 1 == len(found)
    assert "python" in found[0]
