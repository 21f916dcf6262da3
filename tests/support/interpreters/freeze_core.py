"""CPython as cx_Freeze's wheels hold it: built elsewhere by others, stripped, for any C library.

A wheel of ``freeze-core`` has the executable of a frozen application, with the whole interpreter in
it, and the extension modules. A small library that is loaded before makes its main() that of
Python; the modules in Python are those of the Debian build of the same minor version. Those are
from here: free-threaded builds, and builds for musl, the C library of Alpine, which runs them.
"""

import os
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.apt import unpack
from support.interpreters.debian import DebianStatic
from support.interpreters.interpreter import Interpreter, Unavailable, Version, run
from support.interpreters.record import recorded_version, remember_version
from support.paths import ROOT

__all__ = ["FreezeCore"]

_GLIBC = "/lib64/ld-linux-x86-64.so.2"
_MUSL_SUITE = "sid"
"""The interpreters call more than what musl of the stable suites has."""
_MUSL = Path("musl", "usr", "lib", "x86_64-linux-musl", "libc.so")
_MAIN_SOURCE = ROOT / "tests" / "support" / "interpreters" / "python_main.c"
_ANY_LIBC = ("-nostdlib", "-fno-stack-protector")
"""What is built with these runs with either C library."""


@dataclass(frozen=True, slots=True)
class FreezeCore:
    """One minor version, from *release* of ``freeze-core``; Debian's *suite* has the library."""

    minor: str
    release: str
    suite: str
    is_free_threaded: bool = False
    is_musl: bool = False

    @property
    def name(self) -> str:
        """Return ``free-threaded-3.14``, ``musl-3.14`` or ``free-threaded-musl-3.14``."""
        parts = [*(("free-threaded",) if self.is_free_threaded else ()), *self._libc, self.minor]
        return "-".join(parts)

    @property
    def _libc(self) -> tuple[str, ...]:
        return ("musl",) if self.is_musl else ()

    @property
    def _version(self) -> str:
        """Return ``3.14t``."""
        return f"{self.minor}t" if self.is_free_threaded else self.minor

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
        library = folder / "lib" / f"python{self._version}"
        library.mkdir(parents=True)
        for part in modules.iterdir():
            if part.name not in {"lib-dynload", "__pycache__"}:
                (library / part.name).symlink_to(os.path.relpath(part, library))
        (library / "lib-dynload").symlink_to(Path("..", "..", "freeze_core", "lib"))
        main = ("-o", str(folder / "main.so"), str(_MAIN_SOURCE))
        run(["gcc", "-shared", "-fPIC", *_ANY_LIBC, *main])
        if self.is_musl:
            unpack(cache, _MUSL_SUITE, ("musl",), folder / "musl")
        remember_version(folder, self._interpreter(folder, (0, 0, 0)))

    def _unpack_wheel(self, folder: Path) -> None:
        abi = f"cp{self._version.replace('.', '')}"
        platform = "musllinux_1_2_x86_64" if self.is_musl else "manylinux_2_17_x86_64"
        run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", f"--dest={folder}", f"--python-version={self.minor}"),
                *("--implementation=cp", f"--abi={abi}", f"--platform={platform}"),
                f"freeze-core=={self.release}",
            ]
        )
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
            wheel.unlink()
        bases = folder / "freeze_core" / "bases"
        executable = next(bases.glob(f"console-cpython-{abi.removeprefix('cp')}-*"), None)
        if executable is None:
            message = f"freeze-core {self.release} has no executable of {self._version}"
            raise Unavailable(message)
        executable.rename(folder / f"python{self._version}")
        (folder / f"python{self._version}").chmod(0o755)

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from the unpacked wheel."""
        folder = cache / self.name
        return self._interpreter(folder, recorded_version(folder))

    def _interpreter(self, folder: Path, version: Version) -> Interpreter:
        executable = folder / f"python{self._version}"
        loader = str(folder / _MUSL) if self.is_musl else _GLIBC
        preload = ("--preload", str(folder / "main.so"))
        libraries = ("--library-path", str(folder / "freeze_core.libs"))
        # Libraries that workloads are compiled into must run there as well.
        flags = {"GILSCOPE_WORKLOADS_CFLAGS": " ".join(_ANY_LIBC)} if self.is_musl else {}
        return Interpreter(
            name=self.name,
            version=version,
            argv=(loader, *preload, *libraries, str(executable)),
            elf=executable,
            stripped=True,
            env={"PYTHONHOME": str(folder), **flags},
        )
