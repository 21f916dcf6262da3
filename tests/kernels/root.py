"""The root of a guest: files of this machine, packed as an initramfs.

They are those of packages, by name and with what these depend on, the environment of the tests,
this checkout, and interpreters. Nothing is compiled for it, and no module of the kernel needed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path

from support.interpreters.interpreter import run
from support.paths import ROOT

__all__ = ["closure", "names_of", "pack", "steps_to", "wanted_distributions"]

PACKAGES = (
    "bash",
    "busybox-static",
    "coreutils",
    "gcc",
    "libc6-dev",
    "libitm1",
    "python3",
    "python3-venv",
    "util-linux",
)
"""The compiler makes the programs that are traced; gilscope brings its probes compiled."""
_DISTRIBUTIONS = (
    "markupsafe",
    "prometheus-client",
    "pyelftools",
    "pytest",
    "pytest-rerunfailures",
    "pytest-timeout",
    "PyYAML",
    "textual",
)
INTERPRETERS = (
    "debian-2.7",
    "debian-3.11",
    "debian-3.14",
    "debian-libraries",
    "free-threaded-3.14",
    "pypy3-trixie",
)
_LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|info|locale|lintian|bug|zoneinfo|i18n|perl|gdb)/|/usr/share/perl5/"
    r"|/usr/lib/gcc/.*/(lto1|lto-dump|cc1plus|f951|lib[a-z]*san.*|libgcov.*)$|/gconv/"
    r"|/python[^/]*/(idlelib|lib2to3|ensurepip|test)/|/config-3[^/]*/|python-wheels"
)
_LISTED = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
_SETTINGS = ("/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def names_of(depends: str) -> list[str]:
    """Return the packages of a field of dependencies: of alternatives the first."""
    names = (item.split("|")[0].split("(")[0].strip() for item in depends.split(","))
    return [name.partition(":")[0] for name in names if name]


def closure(wanted: Iterable[str], depends: Mapping[str, str]) -> list[str]:
    """Return *wanted* and all that they depend on, of those that *depends* has, in their order."""
    found: dict[str, None] = {}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop(0)
        if name in depends and name not in found:
            found[name] = None
            waiting += names_of(depends[name])
    return list(found)


def steps_to(path: Path) -> Iterator[Path]:
    """Yield what has to be there for *path* to be: folders and links, each once, it last."""
    seen: set[Path] = set()
    followed: set[Path] = set()
    waiting = [path]
    while waiting:
        target = waiting.pop(0)
        at = Path("/")
        for part in target.parts[1:]:
            at /= part
            if at not in seen:
                seen.add(at)
                yield at
            if at.is_symlink():
                if target in followed:
                    break
                followed.add(target)
                rest = target.relative_to(at)
                waiting.append(Path(os.path.normpath(at.parent / at.readlink() / rest)))
                break


def wanted_distributions(names: Iterable[str]) -> list[str]:
    """Return the files of installed distributions, and of those that they require here."""
    found: dict[str, list[str]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0).lower().replace("_", "-")
        if name in found:
            continue
        installed = distribution(name)
        found[name] = [str(file.locate()) for file in installed.files or ()]
        for line in installed.requires or ():
            requirement, _, marker = line.partition(";")
            if "extra" not in marker and (match := _REQUIREMENT.match(requirement)):
                waiting.append(match[0])
                if marker and not _is_installed(match[0]):
                    waiting.pop()
    return [file for files in found.values() for file in files]


def pack(archive: Path, init: str) -> None:
    """Write the archive, with the text *init* as what the guest's kernel starts."""
    extra = archive.with_suffix(".extra")
    extra.mkdir(exist_ok=True)
    program = extra / "init"
    program.write_text(init)
    program.chmod(0o755)
    with archive.open("wb") as file:
        _append(file.fileno(), Path("/"), _paths())
        _append(file.fileno(), extra, [Path("/init")])
    shutil.rmtree(extra)


def _append(fd: int, folder: Path, paths: Iterable[Path]) -> None:
    names = "\0".join(str(path).lstrip("/") for path in paths)
    command = ["cpio", "--create", "--null", "--quiet", "--format=newc"]
    subprocess.run(command, input=names.encode(), stdout=fd, cwd=folder, check=True)


def _paths() -> list[Path]:
    found: dict[Path, None] = {}
    files = list(_files())
    # Under emulation it takes minutes to compile what is imported.
    for path in (*files, *map(_bytecode, files)):
        if not _LEFT_OUT.search(path) and os.path.lexists(path):
            found.update(dict.fromkeys(steps_to(Path(path))))
    # A link of a package that was unpacked elsewhere may lead nowhere.
    return [path for path in found if os.path.lexists(path)]


def _bytecode(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"


def _files() -> Iterator[str]:
    yield from ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin/cc", *_SETTINGS)
    listing = run(
        ["dpkg-query", "--show", "--showformat=${Package}\\t${Pre-Depends}, ${Depends}\\n"]
    )
    depends = dict(line.split("\t") for line in listing.splitlines())
    for package in closure(PACKAGES, depends):
        yield from run(["dpkg-query", "--listfiles", package]).splitlines()
    yield from wanted_distributions(_DISTRIBUTIONS)
    yield from (str(ROOT / ".venv" / name) for name in ("bin/python", "bin/gilscope", "pyvenv.cfg"))
    yield from map(str, (ROOT / ".venv" / "lib").glob("python3*/site-packages/*gilscope*"))
    yield from _of_checkout()
    for name in INTERPRETERS:
        yield from map(str, (ROOT / ".cache" / "interpreters" / name).rglob("*"))


def _of_checkout() -> Iterator[str]:
    for name in run(_LISTED, cwd=ROOT).splitlines():
        yield str(ROOT / name)
    agent = ROOT / "agent" / "gilscope"
    for made in (*agent.rglob("_*.so"), agent / "bpf/uprobes/_keeper", *agent.glob("bpf/ahead/*")):
        yield str(made)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except ModuleNotFoundError:
        return False
    return True
