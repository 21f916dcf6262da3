"""Interpreters that are already on the machine: pyenv's builds, stripped twins, the system's."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.interpreter import Interpreter, Unavailable, Version, run
from support.interpreters.record import recorded_version, remember_version

__all__ = ["Pyenv", "StrippedPyenv", "SystemPython"]


@dataclass(frozen=True, slots=True)
class SystemPython:
    """The distribution's own interpreter: static, stripped, position dependent on Debian 12."""

    name: str
    path: Path
    implementation: str = "cpython"

    def fetch(self, cache: Path) -> None:
        """Note the version of what is installed."""
        if not self.path.exists():
            message = f"{self.path} is not installed"
            raise Unavailable(message)
        (cache / self.name).mkdir(parents=True, exist_ok=True)
        remember_version(cache / self.name, self._interpreter((0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter, if it is still installed."""
        if not self.path.exists():
            message = f"{self.path} is not installed"
            raise Unavailable(message)
        return self._interpreter(recorded_version(cache / self.name))

    def _interpreter(self, version: Version) -> Interpreter:
        return Interpreter(
            name=self.name,
            version=version,
            argv=(str(self.path),),
            elf=self.path.resolve(),
            stripped=True,
            implementation=self.implementation,
        )


@dataclass(frozen=True, slots=True)
class Pyenv:
    """The highest micro version of one minor version that pyenv has built, shared, with symbols."""

    minor: str

    @property
    def name(self) -> str:
        """Return ``pyenv-3.11``."""
        return f"pyenv-{self.minor}"

    def fetch(self, cache: Path) -> None:
        """Fail if pyenv has not built it: nothing is built here."""
        self.find(cache)

    def find(self, cache: Path) -> Interpreter:  # noqa: ARG002 (pyenv keeps its own folder)
        """Return the interpreter where pyenv keeps it."""
        prefix = _newest(self.minor)
        major, minor, micro = prefix.name.split(".")
        return Interpreter(
            name=self.name,
            version=(int(major), int(minor), int(micro)),
            argv=(str(prefix / "bin" / f"python{self.minor}"),),
            elf=_shared_library(prefix),
            stripped=False,
        )


@dataclass(frozen=True, slots=True)
class StrippedPyenv:
    """A twin of pyenv's build without symbols: the original next to it is the ground truth."""

    minor: str

    @property
    def name(self) -> str:
        """Return ``pyenv-3.11-stripped``."""
        return f"pyenv-{self.minor}-stripped"

    def fetch(self, cache: Path) -> None:
        """Strip copies of the executable and of libpython into the cache."""
        original = Pyenv(self.minor).find(cache)
        folder = cache / self.name
        shutil.rmtree(folder, ignore_errors=True)
        for file in (Path(original.argv[0]), original.elf):
            twin = folder / file.parent.name / file.name
            twin.parent.mkdir(parents=True, exist_ok=True)
            run(["strip", "--strip-all", "-o", str(twin), str(file)])
        remember_version(folder, self._interpreter(folder, original))

    def find(self, cache: Path) -> Interpreter:
        """Return the twin, which takes its standard library from the original."""
        original = Pyenv(self.minor).find(cache)
        folder = cache / self.name
        if recorded_version(folder) != original.version:
            message = "pyenv's build has changed: make interpreters"
            raise Unavailable(message)
        return self._interpreter(folder, original)

    def _interpreter(self, folder: Path, original: Interpreter) -> Interpreter:
        executable = Path(original.argv[0])
        return Interpreter(
            name=self.name,
            version=original.version,
            argv=(str(folder / "bin" / executable.name),),
            elf=folder / "lib" / original.elf.name,
            stripped=True,
            env={
                "LD_LIBRARY_PATH": str(folder / "lib"),
                "PYTHONHOME": str(executable.parents[1]),
            },
        )


def _newest(minor: str) -> Path:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    built = [
        path
        for path in root.glob(f"{minor}.*")
        if path.name.removeprefix(f"{minor}.").isdigit() and (path / "bin").is_dir()
    ]
    if not built:
        message = f"pyenv has no Python {minor}"
        raise Unavailable(message)
    return max(built, key=lambda path: int(path.name.rpartition(".")[2]))


def _shared_library(prefix: Path) -> Path:
    minor = prefix.name.rpartition(".")[0]
    # 3.6 and 3.7 carry an "m" behind the version.
    for library in sorted((prefix / "lib").glob(f"libpython{minor}*.so.1.0")):
        return library
    message = f"pyenv's Python {prefix.name} is not built with --enable-shared"
    raise Unavailable(message)
