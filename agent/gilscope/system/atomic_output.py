"""Writes a file as a whole or not at all: what was there before is replaced only at the end."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_writable", "write_atomically"]

_NO_FILE_BESIDE = {errno.EACCES, errno.EPERM, errno.EROFS}
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MODE = 0o666
_MOST_LINKS = 40
"""Of one path: what the kernel follows."""
_MOST_NAME = 200
"""Of the 255 bytes that a name may have, so that there is room for what is added."""


def write_atomically(
    path: str | os.PathLike[str], write: Callable[[BinaryIO], object], *, mode: int = _MODE
) -> None:
    """Have *write* fill the file *path*, which appears when that has succeeded; raises OSError.

    A new one gets *mode*, less what the process masks.

    Whatever *write* raises is passed on, and a file that was there stays as it was. A symbolic link
    is followed. What is no regular file (a terminal, a pipe, ``/dev/stdout``) is written directly,
    and so is a file in a folder that takes no new ones.
    """
    before = _status(path)
    place = Path(os.path.realpath(path))
    if _is_direct(path, before):
        _write_directly(path, write)
        return
    _check_old(path, before)
    try:
        descriptor, beside = _new_file(place, mode)
    except OSError as error:
        if before is None or error.errno not in _NO_FILE_BESIDE:
            raise
        _write_directly(path, write)
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            _take_over(file.fileno(), before)
            # Some file systems say only now that the disk is full.
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError where `write_atomically` could not begin; changes nothing."""
    before = _status(path)
    if _is_direct(path, before):
        # To open a pipe would wait for its reader.
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return
    _check_old(path, before)
    try:
        descriptor, beside = _new_file(Path(os.path.realpath(path)))
    except OSError as error:
        if before is None or error.errno not in _NO_FILE_BESIDE:
            raise
        return
    os.close(descriptor)
    beside.unlink()


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except FileNotFoundError:
        return None


def _is_direct(path: str | os.PathLike[str], before: os.stat_result | None) -> bool:
    """Return whether *path* is no file that another one could take the place of."""
    if before is None:
        return False
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    return not stat.S_ISREG(before.st_mode) or _is_descriptor(os.fspath(path))


def _is_descriptor(path: str) -> bool:
    """Return whether *path* means an open file of this process, as ``/dev/stdout`` does."""
    step = Path(path)
    for _ in range(_MOST_LINKS):
        step = step.parent.resolve() / step.name
        if step.is_relative_to("/proc"):
            return True
        if not step.is_symlink():
            return False
        step = step.parent / step.readlink()
    return False


def _check_old(path: str | os.PathLike[str], before: os.stat_result | None) -> None:
    if before is not None:
        # As with open(): who may not write to a file may not replace it either.
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))


def _new_file(place: Path, mode: int = _MODE) -> tuple[int, Path]:
    name = os.fsdecode(os.fsencode(place.name)[:_MOST_NAME])
    beside = place.with_name(f".{name}.{secrets.token_hex(4)}")
    try:
        return os.open(beside, _NEW, mode), beside
    except OSError as error:
        # The user has not named the other file.
        error.filename = os.fspath(place)
        raise


def _take_over(descriptor: int, before: os.stat_result | None) -> None:
    """Give the new file the owner and the mode of the one that it replaces."""
    if before is None:
        return
    with contextlib.suppress(OSError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _write_directly(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    with Path(path).open("wb") as file:
        write(file)
