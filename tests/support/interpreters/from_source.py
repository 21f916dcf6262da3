"""CPython built here from source, as those build it who want all that a compiler can do.

With optimisation over all files at once (full LTO) a compiler puts parts of functions into others
all over the file, and what is found in other builds may lie elsewhere or several times. This takes
minutes, so it is built where somebody asks for it, and nothing else waits for it.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.apt import unpack_source
from support.interpreters.interpreter import Interpreter, Version, run
from support.interpreters.record import recorded_version, remember_version

__all__ = ["FreeThreadedLto", "original_of"]

_CONFIGURED = (
    "--quiet",
    "--disable-gil",
    "--with-lto=full",
    "--without-ensurepip",
    "--disable-test-modules",
)
_WITHOUT_DEBUG_INFORMATION = "CFLAGS_NODIST=-g0"
"""The names of functions are in the file all the same."""
_HELPERS = ("Programs/_freeze_module", "_bootstrap_python")
"""Programs that the build runs once: linked in the ordinary way, they are there in seconds."""
_LONGEST_S = 3600
_OPT_IN = "opt-in: make interpreter-lto"


@dataclass(frozen=True, slots=True)
class FreeThreadedLto:
    """A free-threaded build of the source of Debian's *suite*, stripped."""

    minor: str
    suite: str

    @property
    def name(self) -> str:
        """Return ``free-threaded-lto-3.13``."""
        return f"free-threaded-lto-{self.minor}"

    def fetch(self, cache: Path) -> None:
        """Build it, and keep a stripped twin of what comes out of that, and its library."""
        folder, tree = cache / self.name, cache / f"{self.name}.build"
        shutil.rmtree(folder, ignore_errors=True)
        unpack_source(cache, self.suite, f"python{self.minor}", tree)
        _build(tree)
        library = folder / "lib" / f"python{self.minor}t"
        modules = library / "lib-dynload"
        shutil.copytree(tree / "Lib", library, ignore=shutil.ignore_patterns("test", "__pycache__"))
        modules.mkdir()
        built = tree / (tree / "pybuilddir.txt").read_text().strip()
        for module in built.glob("*.so"):
            shutil.copy(module, modules)
        for settings in built.glob("_sysconfigdata_*.py"):
            shutil.copy(settings, library)
        executable = self._executable(folder)
        original = original_of(executable)
        for file in (original, executable):
            file.parent.mkdir()
        shutil.copy(tree / "python", original)
        run(["strip", "--strip-all", "-o", str(executable), str(original)])
        shutil.rmtree(tree)
        remember_version(folder, self._interpreter(folder, (0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter, if somebody has built it."""
        folder = cache / self.name
        return self._interpreter(folder, recorded_version(folder, _OPT_IN))

    def _executable(self, folder: Path) -> Path:
        return folder / "bin" / f"python{self.minor}t"

    def _interpreter(self, folder: Path, version: Version) -> Interpreter:
        executable = self._executable(folder)
        return Interpreter(
            name=self.name,
            version=version,
            argv=(str(executable),),
            elf=executable,
            stripped=True,
            env={"PYTHONHOME": str(folder)},
        )


def original_of(executable: Path) -> Path:
    """Return the same executable with its symbols, the ground truth."""
    return executable.parents[1] / "symbols" / executable.name


def _build(tree: Path) -> None:
    """Build the executable and its modules in *tree*, beside whatever else runs."""
    make = ["nice", "make", "--silent", f"--jobs={os.cpu_count() or 1}", _WITHOUT_DEBUG_INFORMATION]
    run(["nice", "./configure", *_CONFIGURED], cwd=tree, timeout_s=_LONGEST_S)
    run([*make, "LDFLAGS_NODIST=-g0 -fno-lto", *_HELPERS], cwd=tree, timeout_s=_LONGEST_S)
    run([*make, "LDFLAGS_NODIST=-g0"], cwd=tree, timeout_s=_LONGEST_S)
