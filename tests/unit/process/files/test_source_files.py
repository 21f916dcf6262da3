"""Source lines, read out of the files of a real process."""

import gc
import json
import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.model.stack import Frame
from gilscope.process.files import source_files
from gilscope.process.files.source_files import SourceLines

_CODE = "def f():\n    return 1\n"
_LINE = "return 1"
_YEAR_NS = 365 * 24 * 3600 * 10**9
_LATER_NS = 20_000_000
"""Two ticks of the clock in which start times of processes are counted."""


@contextmanager
def _process(folder: Path) -> Iterator[int]:
    """Start a process that does nothing but have its working directory in *folder*."""
    with subprocess.Popen(["cat"], cwd=folder, stdin=subprocess.PIPE) as process:
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def _read(pid: int, file: object) -> str | None:
    with SourceLines(pid) as sources:
        return sources.read([_frame(file)]).get((str(file), 2))


def _frame(file: object) -> Frame:
    return Frame("f", str(file), 1, 2)


def _source(path: Path, code: str = _CODE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return path


def test_lines_are_found_under_the_names_that_the_frames_have(tmp_path: Path) -> None:
    """
    Absolute names, and those that are relative to the process' working directory.
    """
    absolute = str(_source(tmp_path / "pkg" / "mod.py"))
    with _process(tmp_path) as pid, SourceLines(pid) as sources:
        names = [absolute, "pkg/mod.py", "./pkg/mod.py", "pkg/../pkg/mod.py"]

        found = sources.read([_frame(name) for name in names])

    assert {(name, 2): _LINE for name in names} == found


def test_listings_have_the_lines_that_are_asked_for(tmp_path: Path) -> None:
    """
    Of each file that is there; what is no file is not looked for.
    """
    absolute = str(_source(tmp_path / "mod.py"))
    with _process(tmp_path) as pid, SourceLines(pid) as sources:
        found = sources.listings(
            {_frame(absolute): [1, 2, 3, 4], _frame("gone.py"): [1], _frame("<string>"): [1]}
        )

    assert {(absolute, 1): "def f():", (absolute, 2): "    return 1", (absolute, 3): ""} == found


def test_process_that_has_ended_still_has_its_sources(tmp_path: Path) -> None:
    """
    What was held on to at the beginning is read at the end.
    """
    _source(tmp_path / "mod.py")
    with _process(tmp_path) as pid:
        sources = SourceLines(pid)
    with sources:
        assert {("mod.py", 2): _LINE} == sources.read([_frame("mod.py")])


def test_closed_reader_and_one_of_no_process_find_nothing(tmp_path: Path) -> None:
    """
    A process that has ended too early has no sources, and that is no failure.
    """
    file = _source(tmp_path / "mod.py")
    with _process(tmp_path) as pid:
        with SourceLines(pid) as closed:
            pass
        assert {} == closed.read([_frame(file)])
    assert _read(pid, file) is None


def test_nothing_is_left_open(tmp_path: Path) -> None:
    """
    Neither by a reader that found its files nor by one that did not.
    """
    file = _source(tmp_path / "mod.py")
    gc.collect()  # what others have left is not closed meanwhile
    before = len(list(Path("/proc/self/fd").iterdir()))
    with _process(tmp_path) as pid:
        assert _LINE == _read(pid, file)
        assert _read(pid, tmp_path / "none.py") is None
    assert _read(pid, file) is None

    assert before == len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("how", ["written", "dated"])
def test_file_that_was_changed_after_the_start_is_not_used(tmp_path: Path, how: str) -> None:
    """
    Not even if a copy has kept the date of its original: the inode tells.
    """
    file = _source(tmp_path / "mod.py")
    with _process(tmp_path) as pid:
        assert _LINE == _read(pid, file)
        if how == "dated":
            os.utime(file, ns=(0, time.time_ns() + _YEAR_NS))
        else:
            # Until the file system's clock has moved on.
            start_ns = time.time_ns()
            while file.stat().st_ctime_ns < start_ns + _LATER_NS:
                os.utime(file, (0, 0))
        assert _read(pid, file) is None


def test_deleted_and_missing_files_have_no_lines(tmp_path: Path) -> None:
    """
    Nor have names that no file can have, or that are not names of files.
    """
    file = _source(tmp_path / "mod.py")
    _source(tmp_path / "<string>")
    with _process(tmp_path) as pid:
        file.unlink()
        for name in (
            file,
            tmp_path,
            "a\0b",
            "<string>",
            "<frozen runpy>",
            "x" * 5000,
            "",
            "\udcff",
        ):
            assert _read(pid, name) is None


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """
    A pipe would block, and a device may do whatever it does when it is opened.
    """
    os.mkfifo(tmp_path / "pipe")
    with _process(tmp_path) as pid:
        assert _read(pid, tmp_path / "pipe") is None
        assert _read(pid, "/dev/zero") is None


def test_frames_without_a_line_ask_for_none(tmp_path: Path) -> None:
    """
    The line of the ``def`` is not where they stood.
    """
    file = str(_source(tmp_path / "mod.py"))
    with _process(tmp_path) as pid, SourceLines(pid) as sources:
        assert {} == sources.read([Frame("f", file, 1)])


def test_file_of_another_version_is_not_used(tmp_path: Path) -> None:
    """
    A function that does not begin where it should gives the file away.
    """
    file = str(_source(tmp_path / "mod.py"))
    with _process(tmp_path) as pid, SourceLines(pid) as sources:
        frames = [_frame(file), Frame("g", file, 1, 2)]

        assert {} == sources.read(frames)


def test_modules_in_archives_are_read(tmp_path: Path) -> None:
    """
    As zipimport names them; also of an application that is one archive.
    """
    with zipfile.ZipFile(tmp_path / "app.pyz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pkg/mod.py", _CODE)
    with _process(tmp_path) as pid:
        assert _LINE == _read(pid, tmp_path / "app.pyz" / "pkg" / "mod.py")
        assert _LINE == _read(pid, "app.pyz/pkg/mod.py")
        assert _read(pid, "app.pyz/pkg/other.py") is None


def test_archive_that_is_none_has_no_lines(tmp_path: Path) -> None:
    """
    Neither a text file nor a damaged archive nor a changed one.
    """
    for name in ("changed", "damaged"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("mod.py", _CODE)
    content = bytearray((tmp_path / "damaged").read_bytes())
    content[38:44] = b"\xff" * 6
    (tmp_path / "damaged").write_bytes(content)
    _source(tmp_path / "text")
    os.utime(tmp_path / "changed", ns=(0, time.time_ns() + _YEAR_NS))
    with _process(tmp_path) as pid:
        for name in ("text", "damaged", "changed"):
            assert _read(pid, tmp_path / name / "mod.py") is None


def test_cell_of_a_notebook_is_found_by_its_text(tmp_path: Path) -> None:
    """
    In whichever notebook of the working directory it is, however late that was saved.
    """
    cell = "/tmp/ipykernel_47/3711764925.py"
    with _process(tmp_path) as pid:
        time.sleep(_LATER_NS / 1e9)
        for name, code in (("a.ipynb", "x=1"), ("b.ipynb", _CODE), ("c.txt", _CODE)):
            cells = [{"cell_type": "code", "source": code}]
            (tmp_path / name).write_text(json.dumps({"cells": cells}))

        assert f"{_LINE}  # code cell 1 of b.ipynb" == _read(pid, cell)
        assert _read(pid, "/tmp/ipykernel_47/3711764926.py") is None


def test_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Neither one that is large, nor more of many than a recording may cost.
    """
    monkeypatch.setattr(source_files, "_LARGEST_SOURCE", 2 * len(_CODE))
    monkeypatch.setattr(source_files, "_MOST_CONTENT", 2 * len(_CODE))
    _source(tmp_path / "large.py", _CODE + "#" * len(_CODE) + "\n")
    names = [str(_source(tmp_path / f"{n}.py")) for n in range(3)]
    with _process(tmp_path) as pid, SourceLines(pid) as sources:
        found = sources.read([_frame(name) for name in ("large.py", *names)])

    assert {(name, 2) for name in names[:2]} == set(found)
