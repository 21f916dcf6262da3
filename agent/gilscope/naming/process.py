"""Makes the short, stable name of a process from its command line."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from gilscope.text.printable import label

__all__ = ["behind_loader", "is_worker", "process_name", "worker_name"]

_MAX_LENGTH = 64
_MAX_READ = 4096
"""A title may be megabytes long."""
_TAKES_ARGUMENT = frozenset("cmWX")
_INTERPRETERS = ("python", "pypy")
_OF_MULTIPROCESSING = (
    "from multiprocessing.spawn import ",
    "from multiprocessing.forkserver import ",
)
_OF_JOBLIB = ("joblib.externals.loky.backend.", "loky.backend.")
_LOADERS = ("ld-linux", "ld-musl", "ld.so")


def process_name(argv: Sequence[str]) -> str:
    """Return the script, the ``-m`` module or the program that *argv* runs.

    ``python3 -u /srv/app.py`` is ``app.py``, ``python -m http.server`` is ``http.server``,
    ``python -c …`` is ``python -c``. A process that has rewritten its title, as servers do, keeps
    the title. What is no text, as a path may be, is escaped, and it is a `label`: a name goes to
    metrics, pages and terminals.
    """
    name = _name(argv)[:_MAX_READ].encode("utf-8", "backslashreplace").decode()
    return label(name, _MAX_LENGTH).strip() or "unknown"


def is_worker(argv: Sequence[str]) -> bool:
    """Return whether *argv* is what Python itself runs where a program wants a worker process."""
    return any(
        (option == "-c" and value.startswith(_OF_MULTIPROCESSING))
        or (option == "-m" and value.startswith(_OF_JOBLIB))
        for option, value in pairwise(argv)
    )


def worker_name(program: str) -> str:
    """Return the name of a worker process of the one with the name *program*, if it is known."""
    return label(f"{program} worker".strip(), _MAX_LENGTH)


def _name(argv: Sequence[str]) -> str:
    if not argv or not argv[0]:
        return "unknown"
    if len(argv) == 1 and " " in argv[0]:
        return argv[0].strip()
    words = behind_loader(list(argv))
    program = _basename(words[0])
    if not program.startswith(_INTERPRETERS):
        return program
    return _python_name(words[1:]) or program


def _python_name(arguments: Sequence[str]) -> str | None:
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "-" or not word.startswith("-"):
            return None if word == "-" else _basename(word)
        if word.startswith("--"):
            position += 1 if "=" in word or word in ("--help", "--version") else 2
            continue
        # Short options may be glued together; the first that takes an argument ends the word.
        letter, rest = _argument_option(word)
        value = rest or (arguments[position + 1] if position + 1 < len(arguments) else "")
        if letter == "m":
            return value or None
        if letter == "c":
            return "python -c"
        position += 1 if letter is None or rest else 2
    return None


def _argument_option(word: str) -> tuple[str | None, str]:
    for index, letter in enumerate(word[1:], start=1):
        if letter in _TAKES_ARGUMENT:
            return letter, word[index + 1 :]
    return None, ""


def behind_loader(words: list[str]) -> list[str]:
    """Return *words* from the program on, where they begin with the dynamic loader."""
    if not words or not _basename(words[0]).startswith(_LOADERS):
        return words
    # ld.so [--library-path DIRS] [--argv0 NAME] program arguments…
    position = 1
    while position < len(words) - 1 and words[position].startswith("--"):
        position += 1 if words[position] in ("--list", "--verify", "--inhibit-cache") else 2
    return words[position:] or words


def _basename(path: str) -> str:
    return PurePosixPath(path).name or path
