"""Says which Python it is."""

from gilscope.model.gil import Process
from gilscope.text.printable import printable

__all__ = ["python_of", "python_words"]


def python_words(version: str, *, needed_by: str | None = None, tells_gil: bool = True) -> str:
    """Return ``CPython 3.11.2``, or ``Python 3.9.16 (PyPy 7.3.11)``, for what a build says.

    A free-threaded one is traced while it has its GIL, which is said too if it *tells_gil*, with
    the module that it is *needed_by*.
    """
    if version.startswith("PyPy"):
        return version
    if version.endswith("t") and tells_gil:
        why = "" if needed_by is None else f", which module {printable(needed_by)} needs"
        return f"CPython {version}, free-threaded with its GIL on{why}"
    return f"Python {version}" if "PyPy" in version else f"CPython {version}"


def python_of(process: Process) -> str:
    """Return the same for what *process* runs."""
    return python_words(process.python, needed_by=process.gil_needed_by)
