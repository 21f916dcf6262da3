"""Every interpreter that the live tests trace, and the command that fetches them.

``python -m support.interpreters.known fetch`` puts what is missing under
``.cache/interpreters`` (a second run finds everything there); ``build`` adds what is built from
source, which takes minutes and is traced only where all others are, too; ``list`` shows what the
tests will find. What cannot be had is noted with its reason, which becomes the reason of the
skipped tests.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from support.interpreters.debian import DebianPypy, DebianShared, DebianStatic
from support.interpreters.foreign import ForeignDebian, ForeignFile
from support.interpreters.freeze_core import FreezeCore
from support.interpreters.from_source import FreeThreadedLto
from support.interpreters.interpreter import Interpreter, Source, Unavailable
from support.interpreters.local import Pyenv, StrippedPyenv, SystemPython
from support.interpreters.maven import Bytedeco
from support.interpreters.record import forget, recent_failure, remember_failure
from support.paths import ROOT

__all__ = [
    "ALL_CPYTHON_27",
    "ALL_INTERPRETERS",
    "CPYTHON_27",
    "FOREIGN",
    "FREE_THREADED",
    "INTERPRETERS",
    "MUSL",
    "MUSL_FREE_THREADED",
    "ONE_PER_MINOR",
    "PYPYS",
    "TIMED_INTERPRETERS",
    "TIMED_MINORS",
    "TIMED_PYPYS",
    "WITH_GIL_ON",
    "ForeignFile",
    "Interpreter",
    "Unavailable",
    "find_interpreter",
    "found_or_skipped",
]

_PYENV = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")

_SUPPORTED: tuple[Source, ...] = (
    *(Pyenv(minor) for minor in _PYENV),
    *(StrippedPyenv(minor) for minor in _PYENV),
    SystemPython("debian-3.11", Path("/usr/bin/python3.11")),
    DebianStatic("3.9", "bullseye", ("libffi7",)),
    DebianStatic("3.13", "trixie"),
    DebianStatic("3.14", "sid"),
    DebianStatic("3.15", "sid"),
    DebianShared("3.11", "bookworm"),
    DebianShared("3.14", "sid"),
    Bytedeco("3.7.9-1.5.4"),
    Bytedeco("3.10.8-1.5.8"),
    Bytedeco("3.12.1-1.5.10", ("libffi7",)),
    Bytedeco("3.14.3-1.5.13"),
)
_CORNERS = frozenset(
    {
        "pyenv-3.6",
        "pyenv-3.7-stripped",
        "pyenv-3.8-stripped",
        "debian-3.9",
        "bytedeco-3.10",
        "debian-3.11",
        "debian-3.11-shared",
        "pyenv-3.12",
        "pyenv-3.13-stripped",
        "debian-3.13",
        "debian-3.14",
        "debian-3.14-shared",
        "debian-3.15",
        "pyenv-2.7",
        "debian-2.7",
    }
)
"""Each version and each way to build: what is traced where nobody asks for all."""
_TIMED = frozenset(
    {
        "pyenv-3.6",
        "pyenv-3.8-stripped",
        "bytedeco-3.10",
        "debian-3.11",
        "pyenv-3.12",
        "debian-3.14-shared",
        "debian-3.15",
    }
)
"""Of these, what is traced for seconds: the oldest and the newest, those from which on the GIL or
the stack lies elsewhere, and each way to build."""
_TIMED_MINORS = frozenset({(3, 6), (3, 8), (3, 11), (3, 12), (3, 14), (3, 15)})
_ALL_ASKED_FOR = bool(os.environ.get("GILSCOPE_ALL_INTERPRETERS"))
_CPYTHON_27: tuple[Source, ...] = (
    Pyenv("2.7"),
    StrippedPyenv("2.7"),
    DebianStatic("2.7", "bullseye", ("libffi7",)),
)
_PYPY: tuple[Source, ...] = (
    DebianPypy("pypy", "bullseye", ("libffi7",)),
    DebianPypy("pypy3", "bullseye", ("libffi7",)),
    DebianPypy("pypy3", "bookworm"),
    DebianPypy("pypy3", "trixie"),
    DebianPypy("pypy3", "sid"),
)
_PYPY_CORNERS = frozenset({"pypy-bullseye", "pypy3-trixie"})
_FREE_THREADED: tuple[Source, ...] = (
    FreezeCore("3.14", "0.8.1", "sid", is_free_threaded=True),
    FreezeCore("3.13", "0.6.1", "trixie", is_free_threaded=True),
    FreezeCore("3.15", "0.8.1", "sid", is_free_threaded=True),
    FreezeCore("3.14", "0.8.1", "sid", is_free_threaded=True, is_musl=True),
)
_MUSL: tuple[Source, ...] = (
    FreezeCore("3.14", "0.8.1", "sid", is_musl=True),
    FreezeCore("3.13", "0.8.1", "trixie", is_musl=True),
)
_BUILT: tuple[Source, ...] = (FreeThreadedLto("3.13", "trixie"),)
"""What nobody has to have: it is built from source."""
_FOREIGN = (ForeignDebian("3.11", "bookworm", "arm64"), ForeignDebian("3.13", "trixie", "arm64"))
_FETCHED: tuple[Source, ...] = (*_SUPPORTED, *_CPYTHON_27, *_PYPY, *_FREE_THREADED, *_MUSL)
_ALL: tuple[Source, ...] = (*_FETCHED, *_BUILT)
_BY_ACTION: Mapping[str, Sequence[Source | ForeignDebian]] = {
    "fetch": (*_FETCHED, *_FOREIGN),
    "build": _BUILT,
}
"""What each action of the command gets."""


def _cache() -> Path:
    configured = os.environ.get("GILSCOPE_TEST_CACHE")
    root = Path(configured) if configured else ROOT / ".cache"
    return root / "interpreters"


def find_interpreter(name: str) -> Interpreter:
    """Return the interpreter *name* of the table; raise Unavailable if it is not on the machine."""
    for source in _ALL:
        if source.name == name:
            return source.find(_cache())
    message = f"no interpreter is called {name}"
    raise ValueError(message)


def found_or_skipped(name: str) -> Interpreter:
    """Return the interpreter *name*; skip the test, with the reason, if it is not there."""
    try:
        return find_interpreter(name)
    except Unavailable as reason:
        pytest.skip(f"{name}: {reason}")


def _parameters(sources: Iterable[Source | ForeignDebian], **settings: str) -> list[object]:
    """Return one pytest parameter a source; those not on the machine carry a skip mark.

    Those that run do so with *settings* in their environment.
    """
    found: list[object] = []
    for source in sources:
        try:
            there = source.find(_cache())
            if isinstance(there, Interpreter):
                there = replace(there, env={**there.env, **settings})
            found.append(pytest.param(there, id=source.name))
        except Unavailable as reason:
            skip = pytest.mark.skip(reason=f"{source.name}: {reason}")
            found.append(pytest.param(None, id=source.name, marks=skip))
    return found


def _one_per_minor(
    sources: Iterable[Source], chosen: Collection[tuple[int, int]] | None = None
) -> list[object]:
    """Return as parameters the first interpreter of each minor version that is on the machine.

    Of those that are *chosen*; None: of all.
    """
    found: dict[tuple[int, int], Interpreter] = {}
    for source in sources:
        with contextlib.suppress(Unavailable):
            interpreter = source.find(_cache())
            found.setdefault(interpreter.minor, interpreter)
    minors = [minor for minor in sorted(found) if chosen is None or minor in chosen]
    return [pytest.param(found[minor], id=found[minor].name) for minor in minors]


ALL_INTERPRETERS = _parameters(_SUPPORTED)
"""For pytest's parametrize: every CPython whose GIL gilscope knows."""
INTERPRETERS = _parameters(
    source for source in _SUPPORTED if _ALL_ASKED_FOR or source.name in _CORNERS
)
"""The same for tests that trace: the telling ones, or all with GILSCOPE_ALL_INTERPRETERS."""
TIMED_INTERPRETERS = _parameters(
    source for source in _SUPPORTED if _ALL_ASKED_FOR or source.name in _TIMED
)
"""The same for tests that take seconds with each."""
ALL_CPYTHON_27 = _parameters(_CPYTHON_27)
"""For pytest's parametrize: builds of CPython 2.7, which has another lock."""
CPYTHON_27 = _parameters(
    source for source in _CPYTHON_27 if _ALL_ASKED_FOR or source.name in _CORNERS
)
"""The same for tests that trace."""
_CHOSEN_FREE_THREADED = (*_FREE_THREADED, *_BUILT) if _ALL_ASKED_FOR else _FREE_THREADED[:1]
FREE_THREADED = _parameters(_CHOSEN_FREE_THREADED)
"""For pytest's parametrize: a free-threaded build, or each with GILSCOPE_ALL_INTERPRETERS.

Then also those that are built from source, or for each the reason why it is not there."""
MUSL = _parameters(_MUSL)
"""For pytest's parametrize: builds with a GIL for musl, the C library of Alpine."""
MUSL_FREE_THREADED = [] if _ALL_ASKED_FOR else _parameters(_FREE_THREADED[-1:])
"""The same without a GIL; none where they are among FREE_THREADED."""
WITH_GIL_ON = _parameters(
    [source for source in _CHOSEN_FREE_THREADED if "musl" not in source.name], PYTHON_GIL="1"
)
"""Those for glibc, with the GIL that they can do without: witnesses are loaded into them."""
ONE_PER_MINOR = _one_per_minor(_SUPPORTED)
"""For pytest's parametrize: one of each version, where the build makes no difference."""
TIMED_MINORS = _one_per_minor(_SUPPORTED, None if _ALL_ASKED_FOR else _TIMED_MINORS)
"""The same for tests that take seconds with each: those versions that differ."""
FOREIGN = _parameters(_FOREIGN)
"""For pytest's parametrize: builds for aarch64, each a `ForeignFile`."""
PYPYS = _parameters(_PYPY)
"""For pytest's parametrize: every PyPy whose GIL gilscope knows."""
TIMED_PYPYS = _parameters(
    source for source in _PYPY if _ALL_ASKED_FOR or source.name in _PYPY_CORNERS
)
"""The same for tests that take their time: the oldest and a new one, or all."""


def _fetch(sources: Iterable[Source | ForeignDebian], *, again: bool) -> None:
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    for source in sources:
        folder = cache / source.name
        if _is_there(source, cache) or (recent_failure(folder) and not again):
            continue
        sys.stderr.write(f"fetching {source.name}\n")
        forget(folder)
        try:
            source.fetch(cache)
        except Unavailable as reason:
            remember_failure(folder, str(reason))
            sys.stderr.write(f"  not available: {reason}\n")


def _is_there(source: Source | ForeignDebian, cache: Path) -> bool:
    try:
        return source.find(cache).elf.exists()
    except Unavailable:
        return False


def _list() -> None:
    for source in _ALL:
        try:
            found = source.find(_cache())
        except Unavailable as reason:
            sys.stdout.write(f"{source.name:22} not available: {reason}\n")
            continue
        version = "{}.{}.{}".format(*found.version)
        symbols = "stripped" if found.stripped else "symbols"
        sys.stdout.write(f"{source.name:22} {version:8} {symbols:9} {found.elf}\n")


def main() -> None:
    """Fetch or list the interpreters, as the command line says."""
    parser = argparse.ArgumentParser(prog="interpreters.py", description=__doc__)
    parser.add_argument("action", choices=(*_BY_ACTION, "list"))
    parser.add_argument(
        "--again", action="store_true", help="also try what has failed within the last hour"
    )
    arguments = parser.parse_args()
    if arguments.action == "list":
        _list()
        return
    _fetch(_BY_ACTION[arguments.action], again=arguments.again)
    # Tests do without what cannot be fetched; who has something built wants nothing else.
    if arguments.action == "build" and not all(_is_there(each, _cache()) for each in _BUILT):
        sys.exit(1)


if __name__ == "__main__":
    main()
