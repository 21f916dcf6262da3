"""Opens files that somebody else has named: regular ones alone, and without waiting for anybody.

To open a device or a pipe can have effects, or wait for ever. So a name is only looked up at first;
what it has led to is examined, and then that very thing is opened, whatever the name leads to by
then. A file whose pages come from a program (FUSE) is refused as well: nobody can make it answer.
"""

import errno
import hashlib
import os
import stat
import threading
import weakref
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from gilscope.elf.image import ElfError, ElfImage
from gilscope.process.files.file_facts import FileFacts
from gilscope.system.syscall import file_system_type, mount_id, open_in_root

__all__ = [
    "MOST_BYTES",
    "FileImage",
    "HeldFile",
    "look_up",
    "look_up_in_root",
    "names_in_folder",
    "opened_for_reading",
]

MOST_BYTES: Final = 256 << 20
"""A larger file is not searched: no interpreter comes near."""

_FUSE_MAGIC: Final = 0x65735546
_FUSE: Final = "fuse"
_PIECE: Final = 1 << 20


def look_up(path: str) -> int:
    """Return a descriptor of what *path* leads to, not opened yet.

    For the links of /proc alone, which lead to a file and not to a name. Raises OSError.
    """
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def look_up_in_root(root_fd: int, path: bytes, *, follows_links: bool) -> int:
    """Return a descriptor of what *path* is in the root directory *root_fd*, not opened yet.

    Raises OSError, also for symbolic links on the way unless *follows_links*.
    """
    return open_in_root(root_fd, path, os.O_PATH, follows_links=follows_links)


def opened_for_reading(looked_up: int, pid: int | str = "self") -> int:
    """Return a readable descriptor of the regular file that *looked_up* is.

    *pid* is a process that has found it in its own name space. Raises OSError where it is no
    regular file, or lies on a file system whose answers come from a program.
    """
    # Before anything else: a program that does not answer may be asked for the status already.
    if _is_fuse(looked_up, pid):
        raise OSError(errno.ENOTSUP, "it lies on a FUSE file system, which may never answer")
    if not stat.S_ISREG(os.fstat(looked_up).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(f"/proc/self/fd/{looked_up}", flags)


def names_in_folder(looked_up: int, pid: int | str, most: int) -> list[str]:
    """Return *most* names at the most in the folder that *looked_up* is.

    *pid* is a process that has found it in its own name space. Raises OSError where it is no
    folder, or lies on a file system whose answers come from a program.
    """
    if _is_fuse(looked_up, pid):
        raise OSError(errno.ENOTSUP, "it lies on a FUSE file system, which may never answer")
    with os.scandir(f"/proc/self/fd/{looked_up}") as entries:
        return [entry.name for entry in islice(entries, most)]


def _is_fuse(descriptor: int, pid: int | str) -> bool:
    mount = _mount_of(descriptor)
    for process in dict.fromkeys((str(pid), "self")):
        kind = None if mount is None else _mount_kinds(process).get(mount)
        if kind is not None:
            return kind == _FUSE or kind.startswith(f"{_FUSE}.")
    # Mounted nowhere any more, or in a name space of a third process.
    return file_system_type(descriptor) == _FUSE_MAGIC


def _mount_of(descriptor: int) -> int | None:
    """Return the id of the mount, None where the kernel does not tell; raises OSError."""
    try:
        return mount_id(descriptor)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EPERM}:
            raise
    # The call is new to the kernel, or to a filter. What is read here may be root's alone.
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_bytes().splitlines()
    found = (line.split()[1] for line in lines if line.startswith(b"mnt_id:"))
    return next(map(int, found), None)


def _mount_kinds(process: str) -> dict[int, str]:
    """Return the type of the file system of each mount that *process* sees, by the mount's id."""
    try:
        text = os.fsdecode(Path(f"/proc/{process}/mountinfo").read_bytes())
    except OSError:
        return {}
    kinds: dict[int, str] = {}
    for line in text.split("\n"):
        # Blanks in names are escaped, so that this is not part of one.
        before, _, after = line.partition(" - ")
        if after:
            kinds[int(before.split(" ", 1)[0])] = after.split(" ", 1)[0]
    return kinds


class _Open:
    """A descriptor that is closed when nobody uses it any more."""

    __slots__ = ("__weakref__", "descriptor", "facts", "identity")

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self.descriptor = descriptor
        self.identity = (status.st_dev, status.st_ino)
        self.facts = FileFacts(descriptor)

    def __del__(self) -> None:
        os.close(self.descriptor)


_open_files: weakref.WeakValueDictionary[tuple[int, int], _Open] = weakref.WeakValueDictionary()
"""By device and inode, which nobody else gets while they are open."""
_lock = threading.Lock()


class HeldFile:
    """A regular file that stays the same one, whatever becomes of its name.

    Those who hold the same file share a descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        """Take over *descriptor*, which can be read."""
        try:
            status = os.fstat(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        with _lock:
            known = _open_files.get((status.st_dev, status.st_ino))
            if known is None:
                known = _Open(descriptor, status)
                _open_files[known.identity] = known
            else:
                os.close(descriptor)
        self._open: _Open | None = known
        self.identity = known.identity
        """Device and inode."""

    @property
    def path(self) -> str:
        """Where this agent, and no other process, finds the file as long as it is held."""
        return f"/proc/self/fd/{self.fileno()}"

    def fileno(self) -> int:
        """Return the descriptor; raises ValueError where it is not held any more."""
        return self._held().descriptor

    @property
    def facts(self) -> FileFacts:
        """What is remembered of the file, by all who hold it; raises ValueError as `fileno`."""
        return self._held().facts

    def close(self) -> None:
        """Close the file."""
        self._open = None

    def read(self, offset: int, size: int) -> bytes:
        """Return *size* bytes at *offset*, fewer at the end; raises OSError.

        Whoever cuts the file meanwhile makes this shorter, and does no other harm.
        """
        pieces = []
        while size > 0:
            piece = os.pread(self.fileno(), size, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def size(self) -> int:
        """Return how many bytes it has now."""
        return os.fstat(self.fileno()).st_size

    def mentions(self, words: Iterable[bytes]) -> bool:
        """Return whether any of *words* is in the file; False for one that is too large."""
        words = tuple(words)
        overlap = max(map(len, words), default=1) - 1
        if self.size() > MOST_BYTES:
            return False
        offset = 0
        while piece := self.read(offset, _PIECE + overlap):
            if any(word in piece for word in words):
                return True
            offset += _PIECE
        return False

    def image(self) -> "FileImage":
        """Return the file as an ELF image; raises ElfError."""
        return FileImage(self)

    def _held(self) -> _Open:
        if self._open is None:
            raise ValueError("the file is not held any more")
        return self._open


class _Content:
    """The bytes of a file, read when they are asked for: a map of them could be cut by others."""

    def __init__(self, file: HeldFile) -> None:
        self._file = file
        self._size = file.size()
        if self._size > MOST_BYTES:
            raise ElfError(
                f"the file has {self._size >> 20} MB; at most {MOST_BYTES >> 20} are searched"
            )

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        try:
            content = self._file.read(start, stop - start)
        except OSError as error:
            raise ElfError(f"the file cannot be read: {error.strerror}") from error
        if len(content) != stop - start:
            raise ElfError("the file was cut while it was read")
        return content


class FileImage(ElfImage):
    """An ELF file of which only the parts that are asked for are read."""

    def __init__(self, file: HeldFile) -> None:
        """Raise ElfError where it is none, or too large."""
        self._content = _Content(file)
        super().__init__(self._content)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole file, in hexadecimal."""
        digest = hashlib.sha256()
        for offset in range(0, len(self._content), _PIECE):
            digest.update(self._content[offset : offset + _PIECE])
        return digest.hexdigest()
