"""Asks the kernel to say when files and folders change."""

import ctypes
import errno
import os
import struct

__all__ = ["Inotify"]

_MODIFY = 0x2
_ATTRIB = 0x4
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_CREATE = 0x100
_DELETE = 0x200
_DELETE_SELF = 0x400
_MOVE_SELF = 0x800
_ONLYDIR = 0x1000000
_OF_FILE = _MODIFY | _ATTRIB | _MOVE_SELF
_OF_FOLDER = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _MOVE_SELF | _DELETE_SELF | _ONLYDIR

_HEAD = struct.Struct("iIII")
_BUFFER_BYTES = 1 << 16
_OVERFLOW = -1

_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """An inotify instance; each watch has a number."""

    def __init__(self) -> None:
        """Raise OSError where the kernel grants none."""
        self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when something has changed."""
        return self._fd

    def watch_file(self, descriptor: int) -> int:
        """Return the watch on the open file, whatever its name; raises OSError."""
        return self._watch(f"/proc/self/fd/{descriptor}", _OF_FILE)

    def watch_folder(self, path: str) -> int:
        """Return the watch on which names *path* has; it is the same each time; raises OSError."""
        return self._watch(path, _OF_FOLDER)

    def _watch(self, path: str, mask: int) -> int:
        name = ctypes.c_char_p(os.fsencode(path))
        return _checked(_libc.inotify_add_watch(self._fd, name, ctypes.c_uint32(mask)))

    def forget(self, watch: int) -> None:
        """Watch no longer; a watch that the kernel has dropped by itself is no mistake."""
        _libc.inotify_rm_watch(self._fd, watch)

    def changed(self) -> frozenset[int] | None:
        """Return the watches that have something to tell; None: too many, it may be any of them."""
        found: set[int] = set()
        while content := self._read():
            at = 0
            while at < len(content):
                watch, _, _, length = _HEAD.unpack_from(content, at)
                found.add(watch)
                at += _HEAD.size + length
        return None if _OVERFLOW in found else frozenset(found)

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _BUFFER_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Give all watches up."""
        os.close(self._fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno() or errno.EINVAL
        raise OSError(number, os.strerror(number))
    return int(result)
