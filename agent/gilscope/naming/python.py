"""Says which Python it is."""

from gilscope.model.gil import Process
from gilscope.text.printable import printable

__all__ = ["python_of", "python_words"]


def python_words(
    version: str,
    *,
    needed_by: str | None = None,
    is_gil_asked_for: bool = False,
    tells_gil: bool = True,
) -> str:
    """Return ``CPython 3.11.2``, or ``Python 3.9.16 (PyPy 7.3.11)``, for what a build says.

    A free-threaded one is traced while it has its GIL, which is said too if it *tells_gil*: that it
    has it from its start because it *is_gil_asked_for*, or the module that it is *needed_by*.
    """
    if version.startswith("PyPy"):
        return version
    if version.endswith("t") and tells_gil:
        why = "" if needed_by is None else f", which module {printable(needed_by)} needs"
        why = " from its start, as was asked for" if is_gil_asked_for else why
        return f"CPython {version}, free-threaded with its GIL on{why}"
    return f"Python {version}" if "PyPy" in version else f"CPython {version}"


def python_of(process: Process) -> str:
    """Return the same for what *process* runs."""
    return python_words(
        process.python,
        needed_by=process.gil_needed_by,
        is_gil_asked_for=process.is_gil_asked_for,
    )
