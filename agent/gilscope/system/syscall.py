"""The system calls that Python has no function for. Nobody else makes any."""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping, Sequence

from gilscope.arch.registry import architecture_named

__all__ = [
    "attempt",
    "call",
    "file_system_type",
    "monotonic_ns",
    "mount_id",
    "number_of",
    "open_in_root",
    "set_file_ids",
    "set_groups",
]

_CLOCK_MONOTONIC = 1

_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_IN_ROOT = 0x2, 0x4, 0x10
_STATFS_SIZE = 120
_AT_EMPTY_PATH, _AT_STATX_DONT_SYNC, _STATX_MNT_ID = 0x1000, 0x4000, 0x1000
_STATX_SIZE, _STATX_MNT_ID_OFFSET = 256, 144

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_machine = architecture_named(platform.machine())
_NUMBERS: Mapping[str, int] = {} if _machine is None else _machine.system_calls


def number_of(name: str) -> int | None:
    """Return the number of the system call *name*, None where it is not known on this machine."""
    return _NUMBERS.get(name)


def attempt(name: str, *arguments: object) -> int:
    """Make the system call *name* and return its result, or what has failed: minus the errno.

    ENOSYS also where its number on this machine is not known. What *arguments* point to must be
    kept until then; one that is 64 bits wide in C has to say so, as a ctypes value.
    """
    number = _NUMBERS.get(name)
    if number is None:
        return -errno.ENOSYS
    result: int = _libc.syscall(number, *arguments)
    return -ctypes.get_errno() if result < 0 else result


def call(name: str, *arguments: object) -> int:
    """Make the system call *name* as `attempt` does; raises OSError where that fails."""
    result = attempt(name, *arguments)
    if result < 0:
        raise OSError(-result, f"{name}: {os.strerror(-result)}")
    return result


def open_in_root(root_fd: int, path: bytes, flags: int, *, follows_links: bool = True) -> int:
    """Open *path* as a process whose root directory is *root_fd* would; return the descriptor.

    Neither ``..`` nor a symbolic link leads out of that root, nor do the links of /proc. Without
    *follows_links* a symbolic link on the way is an error. Needs Linux 5.6. Raises OSError.
    """
    resolve = _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS
    if not follows_links:
        resolve |= _RESOLVE_NO_SYMLINKS
    # struct open_how: flags, mode, resolve.
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    held_path = ctypes.create_string_buffer(path)
    held_how = ctypes.create_string_buffer(how, len(how))
    return call("openat2", root_fd, held_path, held_how, ctypes.c_size_t(len(how)))


def file_system_type(fd: int) -> int:
    """Return the magic number of the file system that *fd* lies on; raises OSError."""
    held = ctypes.create_string_buffer(_STATFS_SIZE)
    call("fstatfs", fd, held)
    return int(struct.unpack_from("=q", held)[0])


def mount_id(fd: int) -> int | None:
    """Return the id of the mount on which *fd* was found, None where the kernel does not tell.

    The file system itself is asked nothing. Raises OSError.
    """
    held = ctypes.create_string_buffer(_STATX_SIZE)
    flags = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
    call("statx", fd, b"", flags, _STATX_MNT_ID, held)
    # stx_mask comes first: what the kernel has filled in.
    if not struct.unpack_from("=I", held)[0] & _STATX_MNT_ID:
        return None
    return int(struct.unpack_from("=Q", held, _STATX_MNT_ID_OFFSET)[0])


def set_file_ids(uid: int, gid: int) -> tuple[int, int]:
    """Let the calling thread, and no other, open files as *uid* and *gid*; return those before.

    A thread that may not change them keeps those that it has: the kernel reports no error.
    """
    old_gid = _libc.setfsgid(gid)
    return _libc.setfsuid(uid), old_gid


def set_groups(groups: Sequence[int]) -> None:
    """Set the supplementary groups of the calling thread, and of no other; raises OSError."""
    held = (ctypes.c_uint32 * len(groups))(*groups)
    call("setgroups", ctypes.c_size_t(len(groups)), held)


def monotonic_ns() -> int:
    """Return what CLOCK_MONOTONIC is by the kernel itself, whatever the C library says."""
    held = ctypes.create_string_buffer(16)
    call("clock_gettime", _CLOCK_MONOTONIC, held)
    seconds, ns = struct.unpack("=qq", held.raw)
    return int(seconds) * 1_000_000_000 + int(ns)
