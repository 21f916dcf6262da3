"""Where caches live, and whether anybody else could have put something there."""

import contextlib
import errno
import os
import secrets
import stat
from collections import deque
from contextlib import ExitStack
from pathlib import Path

__all__ = ["default_folder", "open_trusted", "read_trusted", "replace_in"]

_MOST_LINKS = 40
"""Symbolic links on the way to a folder, as many as the kernel follows."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def default_folder() -> Path:
    """Return where this user's caches live."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is no folder of the user's, says the specification, but one of wherever he is.
    if base.is_absolute():
        return base / "gilscope"
    with contextlib.suppress(RuntimeError):
        home = Path.home()
        if home.is_absolute() and home.is_dir():
            return home / ".cache" / "gilscope"
    # This user has no home: a container's, or a service's.
    return Path("/var/cache/gilscope")


def open_trusted(folder: Path) -> int:
    """Return a descriptor of *folder*, in which only root and this user can put anything.

    That holds for every folder on the way to it and for every symbolic link. In a folder above it
    others may make files of their own if its sticky bit is set, as it is for /tmp. Raises OSError
    that names what is in the way, FileNotFoundError where all that is there may be trusted.
    """
    # To check the path, or its end, would not do: who can write to any folder above may put
    # another in its place, also between the check and the use. So each step is taken from the
    # descriptor of the one before, and what is checked is what was opened.
    if not folder.is_absolute():
        raise OSError(errno.EINVAL, "not an absolute path", str(folder))
    steps = deque(folder.parts)
    position, place = None, Path("/")
    links = 0
    with ExitStack() as opened:
        while steps:
            step = steps.popleft()
            found = os.open(step, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=position)
            opened.callback(os.close, found)
            status = os.fstat(found)
            _require_own(status, place / step)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, "too many symbolic links", str(folder))
                steps.extendleft(reversed(Path(os.readlink("", dir_fd=found)).parts))
                continue
            place /= step
            _require_closed(status, place, is_last=not steps)
            position = found
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=position)


def read_trusted(folder: Path, name: str, most_bytes: int) -> str:
    """Return the text of the file *name* in *folder*, which nobody else can have written.

    It counts as used now. Raises OSError, also where it is no regular file or has more than
    *most_bytes*, and ValueError where it is no text.
    """
    directory = open_trusted(folder)
    try:
        # Without NONBLOCK a pipe of that name would hold the start up.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=directory)
    finally:
        os.close(directory)
    with open(descriptor, encoding="utf-8") as file:  # noqa: PTH123 - of a descriptor
        status = os.fstat(descriptor)
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_uid not in (0, os.geteuid())
            or status.st_mode & _WRITABLE_BY_OTHERS
            or status.st_size > most_bytes
        ):
            raise PermissionError(errno.EPERM, "is not to be trusted", name)
        # Pruning spares what is used; a file system that is read-only is not pruned.
        with contextlib.suppress(OSError):
            os.utime(descriptor)
        return file.read()


def replace_in(directory: int, name: str, text: str, prefix: str) -> None:
    """Put *text* into the file *name* of *directory*, at once and as a whole; raises OSError.

    What is left of it should this process end before begins with *prefix*.
    """
    temporary = f"{prefix}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - of a descriptor
            file.write(text)
        # Another agent may use the same file now: replacing it is atomic.
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(temporary, dir_fd=directory)
        raise


def _require_own(status: os.stat_result, place: Path) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(errno.EPERM, f"belongs to user {status.st_uid}", str(place))


def _require_closed(status: os.stat_result, place: Path, *, is_last: bool) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "is not a folder", str(place))
    if status.st_mode & _WRITABLE_BY_OTHERS and (is_last or not status.st_mode & stat.S_ISVTX):
        raise PermissionError(errno.EPERM, "can be written to by others", str(place))
