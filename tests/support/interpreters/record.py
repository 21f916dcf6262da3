"""What is remembered of each fetched interpreter: its version, or why it could not be had."""

import time
from pathlib import Path

from support.interpreters.interpreter import Interpreter, Unavailable, Version, installed_version

__all__ = ["forget", "recent_failure", "recorded_version", "remember_failure", "remember_version"]

_RETRY_AFTER_S = 3600


def remember_version(folder: Path, candidate: Interpreter) -> None:
    """Start *candidate* and note its version in *folder*, as the last step of a fetch."""
    version = installed_version(candidate)
    (folder / "version").write_text("{}.{}.{}\n".format(*version))


def recorded_version(folder: Path, missing: str = "not fetched: make interpreters") -> Version:
    """Return the version noted in *folder*; raise Unavailable if nothing was fetched there.

    What is *missing* then is said in the caller's words, unless there was a failure.
    """
    try:
        major, minor, micro = (folder / "version").read_text().split(".")
    except FileNotFoundError:
        raise Unavailable(recent_failure(folder, max_age_s=None) or missing) from None
    return int(major), int(minor), int(micro)


def remember_failure(folder: Path, reason: str) -> None:
    """Note that the interpreter of *folder* could not be had."""
    _failure(folder).parent.mkdir(parents=True, exist_ok=True)
    _failure(folder).write_text(f"{reason}\n")


def recent_failure(folder: Path, max_age_s: float | None = _RETRY_AFTER_S) -> str | None:
    """Return the reason noted for *folder*, if there is one that is no older than *max_age_s*."""
    try:
        age_s = time.time() - _failure(folder).stat().st_mtime
    except FileNotFoundError:
        return None
    if max_age_s is not None and age_s > max_age_s:
        return None
    return _failure(folder).read_text().strip()


def forget(folder: Path) -> None:
    """Remove the note of an earlier failure."""
    _failure(folder).unlink(missing_ok=True)


def _failure(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.failed")
