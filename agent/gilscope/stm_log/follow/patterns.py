"""Finds the logs that patterns mean, and the folders in which more of them can appear."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["folders_of", "paths_of"]

_IS_FORK = re.compile(r".*\.fork\d+", re.DOTALL)


def paths_of(patterns: Iterable[str]) -> list[str]:
    """Return the files that *patterns* mean now, with those of forks, each once and in order."""
    found: dict[str, None] = {}
    for pattern in map(_literal_if_there, patterns):
        found.update(dict.fromkeys(sorted(_glob(pattern))))
        forks = sorted(_glob(f"{pattern}.fork*"))
        found.update(dict.fromkeys(fork for fork in forks if _IS_FORK.fullmatch(fork)))
    return list(found)


def _literal_if_there(pattern: str) -> str:
    # A name may have a bracket in it.
    return glob.escape(pattern) if os.path.lexists(pattern) else pattern


def folders_of(patterns: Iterable[str]) -> list[str]:
    """Return the folders that are there in which names can come and go that matter."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for parent in _parents(pattern):
            paths = _glob(parent)
            found.update(dict.fromkeys(path for path in paths if Path(path).is_dir()))
    return list(found)


def _parents(pattern: str) -> Iterator[str]:
    """Yield the folder of *pattern*, and those above it down from the first with a wildcard."""
    parent = Path(pattern).parent
    yield str(parent)
    while glob.has_magic(str(parent)) or not parent.is_dir():
        parent = parent.parent
        yield str(parent)


def _glob(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 - that of Path takes no absolute one
