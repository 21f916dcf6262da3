"""Packages that experiments need, fetched by pip and kept apart in `.cache`.

NumPy comes as a wheel. datrie has none for today's Pythons: it is compiled here from its source
archive, against Debian's headers. Those of a free-threaded build are the same but for one macro.
"""

import fcntl
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from support.interpreters.apt import unpack
from support.interpreters.interpreter import Interpreter, run
from support.paths import ROOT

__all__ = ["with_extensions", "with_tornado"]

_FOLDER = ROOT / ".cache" / "bench" / "extensions"
_PACKAGES = ROOT / ".cache" / "interpreters"
_MINOR = "3.14"
_SUITE = "sid"
_NUMPY = "numpy==2.5.5"
_DATRIE = "datrie==0.8.3"
_TORNADO = "tornado==6.5.4"
_TOOLS = ("Cython==3.2.4", "setuptools==80.9.0")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_MANYLINUX = ("manylinux_2_27_x86_64", "manylinux_2_28_x86_64")
_ABIS = {"cp314": (), "cp314t": ("-DPy_GIL_DISABLED=1",)}
"""Builds of CPython, and what compiles for them with the headers of the first."""


def with_extensions(interpreter: Interpreter, *, free_threaded: bool) -> Interpreter:
    """Return the interpreter with NumPy and datrie on its path, fetched at the first call.

    It is CPython 3.14, *free_threaded* or not. Raises Unavailable.
    """
    _once("done", _fetch)
    return _with_path(interpreter, _FOLDER / ("cp314t" if free_threaded else "cp314"))


def with_tornado(interpreter: Interpreter) -> Interpreter:
    """Return the interpreter with Tornado on its path, fetched at the first call.

    It needs a module `ssl`. Raises Unavailable.
    """
    folder = _FOLDER / "tornado"
    pip = [*_PIP, "install", "--quiet", "--no-deps", "--only-binary=:all:", "--upgrade"]
    _once("tornado-done", lambda: run([*pip, f"--target={folder}", _TORNADO]))
    return _with_path(interpreter, folder)


def _once(mark: str, fetch: Callable[[], object]) -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_FOLDER / mark).exists():
            fetch()
            (_FOLDER / mark).touch()


def _with_path(interpreter: Interpreter, folder: Path) -> Interpreter:
    return replace(interpreter, env={**interpreter.env, "PYTHONPATH": os.fspath(folder)})


def _fetch() -> None:
    tools, source, headers = (_FOLDER / name for name in ("tools", "source", "headers"))
    for folder in (tools, source, *(_FOLDER / abi for abi in _ABIS)):
        shutil.rmtree(folder, ignore_errors=True)
    run([*_PIP, "install", "--quiet", f"--target={tools}", *_TOOLS])
    with_tools = {**os.environ, "PYTHONPATH": os.fspath(tools)}
    run(
        [
            *(*_PIP, "download", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--no-binary=datrie", f"--dest={source}", _DATRIE),
        ],
        env=with_tools,
    )
    (archive,) = source.glob("datrie-*.tar.gz")
    run(["tar", "-xf", str(archive), f"--directory={source}"])
    (package,) = source.glob("datrie-*/")
    cython = [sys.executable, "-m", "cython", "-2", "src/datrie.pyx", "-o", "datrie.c"]
    run(cython, cwd=package, env=with_tools)
    unpack(_PACKAGES, _SUITE, (f"libpython{_MINOR}-dev",), headers)
    for abi, macros in _ABIS.items():
        _fetch_numpy(abi)
        _compile(package, headers / "usr" / "include", _FOLDER / abi / "datrie.so", macros)


def _fetch_numpy(abi: str) -> None:
    folder = _FOLDER / abi
    run(
        [
            *(*_PIP, "download", "--quiet", "--no-deps", "--only-binary=:all:"),
            *(f"--dest={folder}", f"--python-version={_MINOR}"),
            *("--implementation=cp", f"--abi={abi}"),
            *(f"--platform={each}" for each in _MANYLINUX),
            _NUMPY,
        ]
    )
    (wheel,) = folder.glob("numpy-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    wheel.unlink()


def _compile(package: Path, include: Path, library: Path, macros: tuple[str, ...]) -> None:
    library_sources = sorted(map(str, (package / "libdatrie" / "datrie").glob("*.c")))
    run(
        [
            *("gcc", "-O1", "-w", "-shared", "-fPIC", *macros, "-o", str(library)),
            *(f"-I{include / f'python{_MINOR}'}", f"-I{include}", f"-I{package / 'libdatrie'}"),
            *(str(package / "datrie.c"), *library_sources),
        ]
    )
