"""Remembers compiled programs, so that a start needs neither the compiler nor a child process.

What is remembered here will run in the kernel. So it is taken only from a folder in which nobody
but root and this user can put anything (see `open_trusted`), and only from a file that one of the
two owns and nobody else can write to. The seal over the content is no protection from people, who
could make one as well, but from files that were cut or damaged.

It only saves time: whatever is missing, damaged, not ours, or not writable is compiled again.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gilscope import __version__
from gilscope.bpf.compile.object import Compiled, from_json, to_json
from gilscope.system.cache_dir import default_folder, open_trusted, read_trusted, replace_in

__all__ = ["COMPILER", "ProgramCache", "program_key"]

_FORMAT: Final = 2
"""To be raised with every change of what a file holds, or of what is done with it."""
_KEPT = 16
"""A few for each version of gilscope, of the kernel, and each pid namespace with an agent."""
_PREFIX = "programs-"
_LARGEST = 64 << 20
COMPILER = Path(__file__).with_name("bcc_child.py")
"""The program that compiles, by its path."""


def program_key(
    message: Mapping[str, Any],
    *,
    version: str = __version__,
    system: os.uname_result | None = None,
) -> str:
    """Return the name under which the programs of *message*, a request to ``bcc_child``, are kept.

    By default of this gilscope *version* and of the running *system*. The kernel headers do not
    count: the probes use the layout of the registers and nothing else of them.
    """
    system = system or os.uname()
    parts = [
        _FORMAT,
        version,
        COMPILER.read_text("utf-8"),
        system.release,
        system.version,
        system.machine,
        {**message, "cflags": sorted(message["cflags"])},
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ProgramCache:
    """A folder with one file for each key, of which those used last are kept."""

    def __init__(self, folder: Path | None = None) -> None:
        """Keep the files in *folder*, by default where this user's caches live at the time."""
        self._folder = folder

    def load(self, key: str) -> Compiled | None:
        """Return what is remembered under *key*, or None."""
        try:
            text = read_trusted(self._folder or default_folder(), f"{_PREFIX}{key}", _LARGEST)
            seal, _, content = text.partition("\n")
            return from_json(content) if seal == _seal(key, content) else None
        except (OSError, ValueError):
            return None

    def store(self, key: str, compiled: Compiled) -> None:
        """Remember *compiled* under *key*; where that is impossible, nothing happens."""
        content = to_json(compiled)
        with contextlib.suppress(OSError):
            folder = self._folder or default_folder()
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            directory = open_trusted(folder)
            try:
                text = f"{_seal(key, content)}\n{content}"
                replace_in(directory, f"{_PREFIX}{key}", text, _PREFIX)
                _remove_oldest(directory)
            finally:
                os.close(directory)


def _remove_oldest(directory: int) -> None:
    files = [name for name in os.listdir(directory) if name.startswith(_PREFIX)]
    for name in sorted(files, key=lambda name: _used_ns(directory, name))[:-_KEPT]:
        # Another agent may have been faster.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _used_ns(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return 0


def _seal(key: str, content: str) -> str:
    return hashlib.sha256(f"{key} {content}".encode()).hexdigest()
