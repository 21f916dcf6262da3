"""CPython as JavaCPP's presets ship it: built elsewhere, by other people, stripped."""

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.apt import unpack
from support.interpreters.interpreter import Interpreter, Unavailable, Version, run
from support.interpreters.record import recorded_version, remember_version

__all__ = ["Bytedeco"]

_LIBRARY_SUITE = "bullseye"
_PREFIX = "org/bytedeco/cpython/linux-x86_64"


@dataclass(frozen=True, slots=True)
class Bytedeco:
    """One release of the artifact ``cpython``; the version names CPython's and the presets'."""

    release: str
    libraries: tuple[str, ...] = ()
    """Packages with what the artifact has forgotten to bring along."""

    @property
    def name(self) -> str:
        """Return ``bytedeco-3.14``."""
        return f"bytedeco-{self._minor}"

    @property
    def _minor(self) -> str:
        return ".".join(self.release.split(".")[:2])

    def fetch(self, cache: Path) -> None:
        """Copy the artifact with Maven and unpack it."""
        if shutil.which("mvn") is None:
            message = "Maven is not installed"
            raise Unavailable(message)
        folder = cache / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run(
            [
                "mvn",
                "--quiet",
                "--batch-mode",
                "dependency:copy",
                f"-Dartifact=org.bytedeco:cpython:{self.release}:jar:linux-x86_64",
                f"-DoutputDirectory={folder}",
            ],
            cwd=folder,
        )
        for archive in folder.glob("*.jar"):
            with zipfile.ZipFile(archive) as jar:
                jar.extractall(folder)
            archive.unlink()
        # Zip entries made by a JVM carry no permissions.
        (folder / _PREFIX / f"python{self._minor}").chmod(0o755)
        if self.libraries:
            unpack(cache, _LIBRARY_SUITE, self.libraries, folder / "libraries")
        remember_version(folder, self._interpreter(folder, (0, 0, 0)))

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from the unpacked artifact."""
        folder = cache / self.name
        return self._interpreter(folder, recorded_version(folder))

    def _interpreter(self, folder: Path, version: Version) -> Interpreter:
        home = folder / _PREFIX
        libraries = folder / "libraries" / "usr" / "lib" / "x86_64-linux-gnu"
        return Interpreter(
            name=self.name,
            version=version,
            argv=(str(home / f"python{self._minor}"),),
            # 3.7 carries an "m" behind the version, and needs its folder named to find its libffi.
            elf=next(
                home.glob(f"libpython{self._minor}m.so.1.0"),
                home / f"libpython{self._minor}.so.1.0",
            ),
            stripped=True,
            env={"PYTHONHOME": str(home), "LD_LIBRARY_PATH": f"{libraries}:{home}"},
        )
