"""The runtimes that experiments are run on."""

from dataclasses import dataclass

from support.interpreters.interpreter import Interpreter, Unavailable
from support.interpreters.known import find_interpreter

__all__ = ["FREE_THREADED", "MAIN", "RUNTIMES", "TWIN", "Runtime", "find"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """One row of the table."""

    key: str
    title: str
    interpreters: tuple[str, ...]
    """By their names in the table of the tests' interpreters; the first that is here is taken."""


RUNTIMES = (
    Runtime("3.13", "CPython 3.13", ("debian-3.13", "pyenv-3.13")),
    Runtime("3.8", "CPython 3.8", ("pyenv-3.8",)),
    Runtime("3.11", "CPython 3.11", ("debian-3.11", "pyenv-3.11")),
    Runtime("3.15", "CPython 3.15", ("debian-3.15",)),
    Runtime("3.6", "CPython 3.6", ("pyenv-3.6",)),
    Runtime("2.7", "CPython 2.7", ("pyenv-2.7",)),
    Runtime("pypy3", "PyPy 3.9 (7.3.11)", ("pypy3-bookworm",)),
)
MAIN = RUNTIMES[0]
FREE_THREADED = Runtime("3.14t", "CPython 3.14t", ("free-threaded-3.14",))
TWIN = Runtime("3.14", "CPython 3.14", ("debian-3.14",))
"""The same version with a GIL."""


def find(runtime: Runtime) -> Interpreter:
    """Return the runtime's interpreter; raises Unavailable."""
    for name in runtime.interpreters:
        try:
            return find_interpreter(name)
        except Unavailable as error:
            reason = str(error)
    raise Unavailable(f"{runtime.title}: {reason}")
