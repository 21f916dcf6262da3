"""Real ELF files for the tests of what reads them: nothing is built, nothing has to be fetched."""

import re
from pathlib import Path

import pytest

from support.interpreters.known import Unavailable, find_interpreter

__all__ = ["REAL_FILES"]

_OWN = re.compile(r"/(?:python[\d.]*|libpython[^/]*\.so[\d.]*|libc[-\d.]*\.so[\d.]*)$")
_SMALLEST = 1_000_000
"""Bytes; where the interpreter is a library, the program itself holds nothing."""
_INTERPRETERS = ("debian-3.13", "pyenv-3.12")
"""Of two compilers; the second has symbols."""


def _own_files() -> list[Path]:
    """Return the interpreter that runs the tests, its library if it has one, and the C library."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split(maxsplit=5)[-1] for line in lines}
    found = [Path(path) for path in sorted(mapped) if _OWN.search(path)]
    return [path for path in found if path.stat().st_size >= _SMALLEST]


def _parameters() -> list[object]:
    found: list[object] = [pytest.param(path, id=path.name) for path in _own_files()]
    for name in _INTERPRETERS:
        try:
            found.append(pytest.param(find_interpreter(name).elf, id=name))
        except Unavailable as reason:
            skip = pytest.mark.skip(reason=f"{name}: {reason}")
            found.append(pytest.param(None, id=name, marks=skip))
    return found


REAL_FILES = _parameters()
"""For pytest's parametrize."""
