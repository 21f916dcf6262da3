"""Tells whether a free-threaded Python was asked to have its GIL, and so has it from its start.

By ``-X gil=1``, or else by ``PYTHON_GIL=1`` unless the options have variables ignored
(Python/getopt.c and Python/initconfig.c, CPython 3.13 and later). Otherwise an extension module has
made it switch the GIL on.
"""

from collections.abc import Callable, Iterator, Sequence

from gilscope.naming.process import behind_loader
from gilscope.process import procfs

__all__ = ["asked_for_gil", "was_asked_for_gil"]

_VARIABLE = b"PYTHON_GIL=1"
_ANSWERS = {"gil=1": True, "gil=0": False}
_IGNORES_VARIABLES = "EI"
_ENDS_OPTIONS = "cm"
_TAKES_VALUE = "WX"
_LONG_WITH_VALUE = "--check-hash-based-pycs"


def asked_for_gil(pid: int) -> bool:
    """Return whether process *pid* was, as far as is known; raises OSError.

    The title that a program gives itself may be written over what it was started with.
    """
    arguments = procfs.read_command_line(pid)
    return was_asked_for_gil(arguments, lambda: procfs.was_started_with(pid, _VARIABLE))


def was_asked_for_gil(arguments: Sequence[str], has_variable: Callable[[], bool]) -> bool:
    """Return whether the process with these *arguments* was.

    *has_variable* tells whether ``PYTHON_GIL=1`` is in its environment; it is asked only where the
    arguments leave that to decide.
    """
    reads_variables = True
    for letter, value in _options(behind_loader(list(arguments))[1:]):
        if letter == "X" and value in _ANSWERS:
            return _ANSWERS[value]  # of several the first one counts
        reads_variables &= letter not in _IGNORES_VARIABLES
    return reads_variables and has_variable()


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of Python itself, one letter each, with the value that some have."""
    left = iter(words)
    for word in left:
        if word == _LONG_WITH_VALUE:
            next(left, "")
        if word.startswith("--") and word != "--":
            continue
        if word in ("-", "--") or not word.startswith("-"):
            return  # what comes behind is the program's own
        for at, letter in enumerate(word[1:], start=2):
            if letter in _ENDS_OPTIONS:
                return
            if letter in _TAKES_VALUE:
                yield letter, word[at:] or next(left, "")
                break
            yield letter, ""
