"""The packages that real programs are made with, in an environment of their own."""

import fcntl
import hashlib
import subprocess
from functools import cache
from pathlib import Path

from support.paths import ROOT, TESTS

__all__ = ["environment"]

_FOLDER = ROOT / ".cache" / "real"
_PYTHON = "/usr/bin/python3"
_TIMEOUT_S = 900


@cache
def environment(requirements: str) -> Path:
    """Return the folder of programs of an environment with what that file of ``real`` names.

    It is made once, and again when the file has changed.
    """
    file = TESTS / "real" / requirements
    key = hashlib.sha256(b"".join(each.read_bytes() for each in sorted(file.parent.glob("*.txt"))))
    folder = _FOLDER / f"{file.stem}-{key.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _run([_PYTHON, "-m", "venv", "--clear", str(folder / "venv")])
            pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check"]
            _run([*pip, "install", "--quiet", "--only-binary", ":all:", "-r", str(file)])
            done.touch()
    return folder / "venv" / "bin"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)
