"""Free-threaded CPython: what cx_Freeze's wheels hold, built elsewhere by others and stripped.

A wheel of ``freeze-core`` has the executable of a frozen application, with the whole interpreter in
it, and the extension modules. A small library that is loaded before makes its main() that of
Python; the modules in Python are those of the Debian build of the same minor version.
"""

import os
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.debian import DebianStatic
from support.interpreters.interpreter import Interpreter, Unavailable, Version, run
from support.interpreters.record import recorded_version, remember_version
from support.paths import ROOT

__all__ = ["FreeThreaded"]

_LOADER = "/lib64/ld-linux-x86-64.so.2"
_MAIN_SOURCE = ROOT / "tests" / "support" / "interpreters" / "python_main.c"


@dataclass(frozen=True, slots=True)
class FreeThreaded:
    """One minor version, from *release* of ``freeze-core``; Debian's *suite* has the library."""

    minor: str
    release: str
    suite: str

    @property
    def name(self) -> str:
        """Return ``free-threaded-3.14``."""
        return f"free-threaded-{self.minor}"

    @property
    def _library(self) -> DebianStatic:
        return DebianStatic(self.minor, self.suite)

    def fetch(self, cache: Path) -> None:
        """Download the wheel, unpack it, and put beside it what it needs to be a Python."""
        modules = cache / self._library.name / "usr" / "lib" / f"python{self.minor}"
        if not modules.exists():
            self._library.fetch(cache)
        folder = cache / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._unpack_wheel(folder)
        # Relative, so that the cache may be moved.
        library = folder / "lib" / f"python{self.minor}t"
        library.mkdir(parents=True)
        for part in modules.iterdir():
            if part.name not in {"lib-dynload", "__pycache__"}:
                (library / part.name).symlink_to(os.path.relpath(part, library))
        (library / "lib-dynload").symlink_to(Path("..", "..", "freeze_core", "lib"))
        run(["gcc", "-shared", "-fPIC", "-o", str(folder / "main.so"), str(_MAIN_SOURCE), "-ldl"])
        remember_version(folder, self._interpreter(folder, (0, 0, 0)))

    def _unpack_wheel(self, folder: Path) -> None:
        number = self.minor.replace(".", "")
        run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", f"--dest={folder}", f"--python-version={self.minor}"),
                *("--implementation=cp", f"--abi=cp{number}t"),
                *("--platform=manylinux_2_17_x86_64", f"freeze-core=={self.release}"),
            ]
        )
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
            wheel.unlink()
        bases = folder / "freeze_core" / "bases"
        executable = next(bases.glob(f"console-cpython-{number}t-*"), None)
        if executable is None:
            message = f"freeze-core {self.release} has no executable of {self.minor}t"
            raise Unavailable(message)
        executable.rename(folder / f"python{self.minor}t")
        (folder / f"python{self.minor}t").chmod(0o755)

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from the unpacked wheel."""
        folder = cache / self.name
        return self._interpreter(folder, recorded_version(folder))

    def _interpreter(self, folder: Path, version: Version) -> Interpreter:
        executable = folder / f"python{self.minor}t"
        preload = ("--preload", str(folder / "main.so"))
        libraries = ("--library-path", str(folder / "freeze_core.libs"))
        return Interpreter(
            name=self.name,
            version=version,
            argv=(_LOADER, *preload, *libraries, str(executable)),
            elf=executable,
            stripped=True,
            env={"PYTHONHOME": str(folder)},
        )
