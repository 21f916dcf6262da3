"""Builds of other Debian suites, unpacked beside the system and run with their own C library."""

from dataclasses import dataclass
from pathlib import Path

from support.interpreters.apt import unpack
from support.interpreters.interpreter import Interpreter, Version, run
from support.interpreters.record import recorded_version, remember_version

__all__ = ["DebianPypy", "DebianShared", "DebianStatic"]

_LIBRARIES = ("libc6", "libexpat1", "zlib1g", "libffi8")
_LIBRARY_SUITE = "sid"
_TRIPLET = "x86_64-linux-gnu"
_EMBEDDING_PROGRAM = """\
int Py_BytesMain(int, char **);

int main(int argc, char **argv)
{
    return Py_BytesMain(argc, argv);
}
"""


@dataclass(frozen=True, slots=True)
class DebianStatic:
    """The suite's ``python3.x-minimal``: one executable with the whole interpreter in it."""

    minor: str
    suite: str
    libraries: tuple[str, ...] = ()
    """Packages that the newest suite no longer has."""

    @property
    def name(self) -> str:
        """Return ``debian-3.14``."""
        return f"debian-{self.minor}"

    def fetch(self, cache: Path) -> None:
        """Download and unpack the suite's packages, and the newest suite's C library."""
        _fetch_libraries(cache)
        folder = cache / self.name
        names = (f"python{self.minor}-minimal", *_parts(self.minor), *self.libraries)
        unpack(cache, self.suite, names, folder)
        remember_version(folder, self._interpreter(cache, (0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from the unpacked packages."""
        return self._interpreter(cache, recorded_version(cache / self.name))

    def _interpreter(self, cache: Path, version: Version) -> Interpreter:
        folder = cache / self.name
        executable = folder / "usr" / "bin" / f"python{self.minor}"
        return Interpreter(
            name=self.name,
            version=version,
            argv=(*_loader(cache, folder / "usr" / "lib" / _TRIPLET), str(executable)),
            elf=executable,
            stripped=True,
            env={"PYTHONHOME": str(folder / "usr")},
        )


@dataclass(frozen=True, slots=True)
class DebianShared:
    """The suite's ``libpython3.x``, a build of its own, in a program that embeds it."""

    minor: str
    suite: str

    @property
    def name(self) -> str:
        """Return ``debian-3.14-shared``."""
        return f"debian-{self.minor}-shared"

    def fetch(self, cache: Path) -> None:
        """Download and unpack the suite's packages and compile the program."""
        _fetch_libraries(cache)
        folder = cache / self.name
        unpack(cache, self.suite, (f"libpython{self.minor}", *_parts(self.minor)), folder)
        source = folder / "embed.c"
        source.write_text(_EMBEDDING_PROGRAM)
        library = folder / "usr" / "lib" / _TRIPLET / f"libpython{self.minor}.so.1.0"
        # Its C library is newer than the linker's: what it needs of it is found when it runs.
        undefined = "-Wl,--allow-shlib-undefined"
        run(["gcc", "-o", str(folder / "embed"), str(source), str(library), undefined])
        remember_version(folder, self._interpreter(cache, (0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the program that embeds the unpacked library."""
        return self._interpreter(cache, recorded_version(cache / self.name))

    def _interpreter(self, cache: Path, version: Version) -> Interpreter:
        folder = cache / self.name
        libraries = folder / "usr" / "lib" / _TRIPLET
        return Interpreter(
            name=self.name,
            version=version,
            argv=(*_loader(cache, libraries), str(folder / "embed")),
            elf=libraries / f"libpython{self.minor}.so.1.0",
            stripped=True,
            env={"PYTHONHOME": str(folder / "usr")},
        )


@dataclass(frozen=True, slots=True)
class DebianPypy:
    """The suite's PyPy: a small executable and its library, which is stripped."""

    package: str
    """``pypy3``, or ``pypy`` for the last one of Python 2.7."""
    suite: str
    libraries: tuple[str, ...] = ()
    """Packages that the newest suite no longer has."""

    @property
    def name(self) -> str:
        """Return ``pypy3-bookworm``."""
        return f"{self.package}-{self.suite}"

    def fetch(self, cache: Path) -> None:
        """Download and unpack the suite's packages, and the newest suite's C library."""
        _fetch_libraries(cache)
        folder = cache / self.name
        unpack(cache, self.suite, (self.package, f"{self.package}-lib", *self.libraries), folder)
        remember_version(folder, self._interpreter(cache, (0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from the unpacked packages."""
        return self._interpreter(cache, recorded_version(cache / self.name))

    def _interpreter(self, cache: Path, version: Version) -> Interpreter:
        folder = cache / self.name
        libraries = folder / "usr" / "lib" / _TRIPLET
        # Debian 11 had the library in a folder of its own, and a link to it.
        places = (*libraries.glob("libpypy*-c.so"), *libraries.parent.glob("pypy*/bin/libpypy*"))
        return Interpreter(
            name=self.name,
            version=version,
            argv=(*_loader(cache, libraries), str(folder / "usr" / "bin" / self.package)),
            elf=next(iter(places), libraries / f"lib{self.package}-c.so"),
            stripped=True,
            implementation="pypy",
        )


def _parts(minor: str) -> tuple[str, str]:
    return f"libpython{minor}-minimal", f"libpython{minor}-stdlib"


def _libraries(cache: Path) -> Path:
    return cache / "debian-libraries" / "usr" / "lib" / _TRIPLET


def _loader(cache: Path, more: Path) -> tuple[str, ...]:
    # The loader is called by name: the one that the executable asks for is too old for it.
    path = f"{_libraries(cache)}:{more}"
    return (str(_libraries(cache) / "ld-linux-x86-64.so.2"), "--library-path", path)


def _fetch_libraries(cache: Path) -> None:
    if not _libraries(cache).joinpath("ld-linux-x86-64.so.2").exists():
        unpack(cache, _LIBRARY_SUITE, _LIBRARIES, cache / "debian-libraries")
