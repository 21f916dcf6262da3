"""One Python interpreter that tests start and trace, and the failure to get one."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

__all__ = ["Interpreter", "Source", "Unavailable", "Version", "installed_version", "run"]

Version = tuple[int, int, int]

_VERSION_SCRIPT = "import sys, threading; print('%d.%d.%d' % sys.version_info[:3])"
# What would lead an interpreter to somebody else's library or settings.
_INHERITED = ("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV")


class Unavailable(Exception):
    """An interpreter cannot be had on this machine; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that is ready to run."""

    name: str
    version: Version
    argv: tuple[str, ...]
    """What starts it, up to where Python's own options begin."""
    elf: Path
    """The file that holds the code of the GIL: the executable or its libpython."""
    stripped: bool
    """The file has no symbol table besides the dynamic one."""
    implementation: str = "cpython"
    env: Mapping[str, str] = field(default_factory=dict)
    """What it needs in its environment besides the caller's."""

    @property
    def minor(self) -> tuple[int, int]:
        """Return the version as far as the layout of the GIL depends on it."""
        return self.version[:2]

    def command(self, *arguments: str) -> list[str]:
        """Return the argument list that runs this interpreter with *arguments*."""
        return [*self.argv, *arguments]

    def environment(self, **extra: str) -> dict[str, str]:
        """Return the whole environment to run it in: the caller's, its own, *extra*."""
        inherited = {key: value for key, value in os.environ.items() if key not in _INHERITED}
        return {**inherited, **self.env, **extra}


class Source(Protocol):
    """One row of the table of interpreters."""

    @property
    def name(self) -> str:
        """Return the name of the interpreter, which is also its folder in the cache."""

    def fetch(self, cache: Path) -> None:
        """Put under *cache* what is missing; raise Unavailable if that fails."""

    def find(self, cache: Path) -> Interpreter:
        """Return the interpreter from what is there now; raise Unavailable if it is not."""


def run(
    command: list[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout_s: float = 600,
) -> str:
    """Return what *command* prints; raise Unavailable with its last words if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"cannot run {command[0]}: {error}"
        raise Unavailable(message) from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        message = f"{Path(command[0]).name} failed with {done.returncode}: {words}"
        raise Unavailable(message)
    return done.stdout


def installed_version(candidate: Interpreter) -> Version:
    """Return the version that *candidate* reports when started; raise Unavailable if it fails."""
    printed = run(candidate.command("-c", _VERSION_SCRIPT), env=candidate.environment())
    major, minor, micro = printed.split(".")
    return int(major), int(minor), int(micro)
