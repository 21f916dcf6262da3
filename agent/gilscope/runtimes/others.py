"""Recognises what runs Python programs and has no lock that gilscope knows, to refuse it by name.

None of these has the C API of CPython, by which all others are told: without this they would be
"no Python interpreter", which nobody believes who has just started one.
"""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from gilscope.errors import UnsupportedPython
from gilscope.values import dataclass

__all__ = ["refuse_other_pythons"]


@dataclass(frozen=True, slots=True)
class _Other:
    name: str
    file: re.Pattern[str]
    """The name of a file that it has mapped."""
    argument: re.Pattern[str] | None
    """What one of its arguments is, where the file is no proof by itself."""
    checked: str
    """What was found, as ``%s``: the file, or the argument."""
    why: str
    remedy: str


_CPYTHON: Final = "Run the program on CPython 3.6 to 3.15 to see what its threads wait for."
_OTHERS: Final = (
    _Other(
        "GraalPy",
        re.compile(r"libpythonvm\.so|graalpy[^/]*"),
        None,
        "it maps %s",
        "whose GIL is a lock of Java",
        f"A Java profiler sees the locks of a Java virtual machine. {_CPYTHON}",
    ),
    _Other(
        "GraalPy",
        re.compile(r"libjvm\.so"),
        re.compile(r"com\.oracle\.graal\.python.*"),
        "a Java virtual machine that was started with %s",
        "whose GIL is a lock of Java",
        f"A Java profiler sees the locks of a Java virtual machine. {_CPYTHON}",
    ),
    _Other(
        "Jython",
        re.compile(r"libjvm\.so"),
        re.compile(r"org\.python\.util\.jython|(?:.*/)?jython[^/]*\.jar"),
        "a Java virtual machine that was started with %s",
        "which has no GIL: threads wait for locks of Java",
        f"A Java profiler sees the locks of a Java virtual machine. {_CPYTHON}",
    ),
    _Other(
        "MicroPython",
        re.compile(r"micropython[^/]*"),
        None,
        "it runs %s",
        "whose lock is not CPython's",
        _CPYTHON,
    ),
)


def refuse_other_pythons(command_line: Sequence[str], paths: Sequence[str]) -> None:
    """Raise UnsupportedPython for a process with that *command_line* that maps files of *paths*."""
    names = {PurePath(path.removesuffix(" (deleted)")).name for path in paths}
    for other in _OTHERS:
        files = sorted(name for name in names if other.file.fullmatch(name))
        if not files:
            continue
        proofs = files
        if other.argument is not None:
            # A class path names several files.
            words = (word for argument in command_line for word in argument.split(":"))
            proofs = [word for word in words if other.argument.fullmatch(word)]
        if proofs:
            raise UnsupportedPython(
                f"this is {other.name} ({other.checked % proofs[0]}), {other.why}",
                remedy=other.remedy,
            )
