"""The system calls that Python has no function for, and how they fail."""

import ctypes
import os
import struct
from collections.abc import Sequence

__all__ = [
    "checked",
    "file_system_type",
    "libc",
    "monotonic_ns",
    "mount_id",
    "open_in_root",
    "set_file_ids",
    "set_groups",
]

_SYS_SETGROUPS = 116
_SYS_FSTATFS = 138
_SYS_STATX = 332
_SYS_OPENAT2 = 437
_SYS_CLOCK_GETTIME = 228
_CLOCK_MONOTONIC = 1

_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_IN_ROOT = 0x2, 0x4, 0x10
_STATFS_SIZE = 120
_AT_EMPTY_PATH, _AT_STATX_DONT_SYNC, _STATX_MNT_ID = 0x1000, 0x4000, 0x1000
_STATX_SIZE, _STATX_MNT_ID_OFFSET = 256, 144

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result: int, what: str) -> int:
    """Return the *result* of the system call *what*; raises the OSError that it stands for."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
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
    return checked(
        libc.syscall(_SYS_OPENAT2, root_fd, held_path, held_how, ctypes.c_size_t(len(how))),
        "openat2",
    )


def file_system_type(fd: int) -> int:
    """Return the magic number of the file system that *fd* lies on; raises OSError."""
    held = ctypes.create_string_buffer(_STATFS_SIZE)
    checked(libc.syscall(_SYS_FSTATFS, fd, held), "fstatfs")
    return int(struct.unpack_from("=q", held)[0])


def mount_id(fd: int) -> int | None:
    """Return the id of the mount on which *fd* was found, None where the kernel does not tell.

    The file system itself is asked nothing. Raises OSError.
    """
    held = ctypes.create_string_buffer(_STATX_SIZE)
    flags = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
    checked(libc.syscall(_SYS_STATX, fd, b"", flags, _STATX_MNT_ID, held), "statx")
    # stx_mask comes first: what the kernel has filled in.
    if not struct.unpack_from("=I", held)[0] & _STATX_MNT_ID:
        return None
    return int(struct.unpack_from("=Q", held, _STATX_MNT_ID_OFFSET)[0])


def set_file_ids(uid: int, gid: int) -> tuple[int, int]:
    """Let the calling thread, and no other, open files as *uid* and *gid*; return those before.

    A thread that may not change them keeps those that it has: the kernel reports no error.
    """
    old_gid = libc.setfsgid(gid)
    return libc.setfsuid(uid), old_gid


def set_groups(groups: Sequence[int]) -> None:
    """Set the supplementary groups of the calling thread, and of no other; raises OSError."""
    held = (ctypes.c_uint32 * len(groups))(*groups)
    checked(libc.syscall(_SYS_SETGROUPS, ctypes.c_size_t(len(groups)), held), "setgroups")


def monotonic_ns() -> int:
    """Return what CLOCK_MONOTONIC is by the kernel itself, whatever the C library says."""
    held = ctypes.create_string_buffer(16)
    checked(libc.syscall(_SYS_CLOCK_GETTIME, _CLOCK_MONOTONIC, held), "clock_gettime")
    seconds, ns = struct.unpack("=qq", held.raw)
    return int(seconds) * 1_000_000_000 + int(ns)
