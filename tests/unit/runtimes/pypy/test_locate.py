"""Finds a PyPy among what a process has mapped."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.errors import NotPython, UnsupportedPython
from gilscope.process.view import view_of
from gilscope.runtimes.interpreter_files import LikelyFiles
from gilscope.runtimes.pypy.build import PyPyBuild
from gilscope.runtimes.pypy.locate import PyPy
from gilscope.runtimes.sites import LockForm

_LOADS = "import ctypes, sys; kept = [ctypes.CDLL(at) for at in sys.argv[1:]]; print(1); input()"
_MARKED, _OTHER = "int pypy_main_startup;", "int other;"


def _library(folder: Path, name: str, source: str = _MARKED) -> str:
    (folder / "made.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", name, "made.c"]
    subprocess.run(command, check=True, cwd=folder)
    return str(folder / name)


@contextmanager
def _found(*libraries: str) -> Iterator[PyPyBuild]:
    """Yield what is found in a process that has loaded these."""
    command = [sys.executable, "-SEuc", _LOADS, *libraries]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with LikelyFiles(view_of(process.pid)) as files:
            yield PyPy().detect(files)
        process.kill()


def test_a_library_with_its_marker_is_one(tmp_path: Path) -> None:
    """
    Its version and its sites are read later.
    """
    library = _library(tmp_path, "libpypy-c.so")

    with _found(library) as build:
        assert (library, "PyPy", "pypy", LockForm.TURNS) == (
            build.file.mapping.path,
            build.version,
            build.runtime,
            build.lock_form,
        )
        assert build.load_bias
        assert build.site_file is build.file


def test_a_name_alone_is_none(tmp_path: Path) -> None:
    """
    What only is called so does not export what PyPy does; another name is not even opened.
    """
    called = _library(tmp_path, "libpypy-c.so", _OTHER)
    named = _library(tmp_path, "libother.so")

    with pytest.raises(NotPython, match="does not map a Python"), _found(called):
        pass
    with pytest.raises(NotPython, match="maps no PyPy"), _found(named):
        pass


def test_two_of_them_are_refused(tmp_path: Path) -> None:
    """
    None is chosen.
    """
    libraries = [_library(tmp_path, name) for name in ("libpypy-c.so", "libpypy3-c.so")]

    with pytest.raises(UnsupportedPython, match="has loaded PyPy 2 times"), _found(*libraries):
        pass
