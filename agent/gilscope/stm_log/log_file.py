"""Opens what may be an STM log, without effect on what is none."""

import errno
import os
import stat

__all__ = ["NoLogFileError", "open_log_file"]

_OPTIONS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class NoLogFileError(ValueError):
    """A name means something that cannot be a log; the message says what, as in "it is a pipe"."""


def open_log_file(path: str, *, takes_pipes: bool) -> tuple[int, os.stat_result]:
    """Return a descriptor of the regular file *path* that never waits, and its status.

    With *takes_pipes* a pipe is taken as well. Raises NoLogFileError for anything else, which is
    not opened: to open a device can have effects, and to open a pipe would wait for its other end.
    Raises OSError where the file is not there or cannot be read.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(place)
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if kind != stat.S_IFREG and not (takes_pipes and kind == stat.S_IFIFO):
            raise NoLogFileError(f"it is {_KINDS.get(kind, 'no regular file')}")
        return _open_again(place, path), status
    finally:
        os.close(place)


def _open_again(place: int, path: str) -> int:
    # The same file that was checked, whatever has the name by now.
    try:
        return os.open(f"/proc/self/fd/{place}", _OPTIONS)
    except FileNotFoundError:
        if os.path.lexists("/proc/self"):
            raise
    return os.open(path, _OPTIONS)
