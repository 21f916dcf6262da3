"""Opens the very file that a process maps, whatever its name leads to by now."""

import contextlib
import errno
import os
from collections.abc import Iterator

from gilscope.errors import NotPermitted, NotPython
from gilscope.process import procfs
from gilscope.process.access import readable
from gilscope.process.files.regular_file import (
    FileImage,
    HeldFile,
    look_up,
    look_up_in_root,
    opened_for_reading,
)
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import Mapping
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = [
    "MappedFile",
    "check_name",
    "leads_to",
    "open_mapped",
    "open_program",
]

_COMPARED = 4096
_ESCAPED_NEWLINE = b"\\012"


@dataclass(frozen=True, slots=True)
class MappedFile:
    """One file in a process, which stays open until it is closed."""

    mapping: Mapping
    """The one that begins at the file's first byte."""
    opened_as: str
    """The way that led to it."""
    held: HeldFile

    @property
    def path(self) -> str:
        """Where this agent finds the file as long as it is open."""
        return self.held.path

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.held.identity

    def image(self) -> FileImage:
        """Return the file as an ELF image; raises ElfError."""
        return self.held.image()

    def close(self) -> None:
        """Close the file. What the kernel has of it, as its probes have, stays."""
        self.held.close()


def open_mapped(pid: int, mapping: Mapping) -> MappedFile:
    """Return the file behind *mapping*, which begins at the first byte of a file.

    Its name may by now be another file's: an upgraded interpreter, one that was mounted over it, or
    one of the agent's own name space. Inode and first page in memory decide. Raises NotPermitted
    or NotPython.
    """
    denied: OSError | None = None
    for way, looked_up in _ways(pid, mapping):
        try:
            held = _opened(pid, way, looked_up)
        except PermissionError as error:
            denied = error
            continue
        except OSError as error:
            denied = error if error.errno == errno.ENOTSUP else denied
            continue
        with contextlib.ExitStack() as closing:
            closing.callback(held.close)
            # The inode tells a file from its copy; overlayfs and btrfs tell a device of their own.
            is_same = way.endswith(_own_link(mapping)) or held.identity[1] == mapping.inode
            if is_same and _is_mapped(pid, mapping, held):
                closing.pop_all()
                return MappedFile(mapping, way, held)
    if not procfs.is_alive(pid):
        raise NotPython(f"there is no process {pid}")
    raise _refusal(pid, mapping, denied)


def open_program(pid: int) -> HeldFile:
    """Return the file of the program that process *pid* runs; raises OSError."""
    return _opened(pid, f"/proc/{pid}/exe", None)


def leads_to(pid: int, file: MappedFile) -> bool:
    """Return whether the name that process *pid* maps *file* under leads to that file now."""
    for way, name in _ways(pid, file.mapping):
        if name is None:
            continue
        with contextlib.suppress(OSError), contextlib.closing(_opened(pid, way, name)) as found:
            if found.identity == file.identity:
                return True
    return False


def check_name(pid: int, mapping: Mapping) -> None:
    """Raise PermissionError where what *mapping* is named may not be opened, or another OSError."""
    for way, name in _ways(pid, mapping):
        if name is not None:
            _opened(pid, way, name).close()


def _ways(pid: int, mapping: Mapping) -> Iterator[tuple[str, bytes | None]]:
    """Yield what may lead to the file, with the name in the root directory where it is one."""
    # Both lead to the inode itself, deleted or not.
    yield f"/proc/{pid}/exe", None
    yield f"/proc/{pid}{_own_link(mapping)}", None
    if mapping.is_deleted:
        return
    name = os.fsencode(mapping.path)
    yield f"/proc/{pid}/root{mapping.path}", name
    if _ESCAPED_NEWLINE in name:
        # Or so: what is found is compared, so that nothing is believed.
        yield f"/proc/{pid}/root{mapping.path}", name.replace(_ESCAPED_NEWLINE, b"\n")


def _own_link(mapping: Mapping) -> str:
    """Return where /proc/PID leads to what is mapped there, by whatever inode stat tells of it."""
    return f"/map_files/{mapping.start:x}-{mapping.end:x}"


def _opened(pid: int, way: str, name: bytes | None) -> HeldFile:
    with contextlib.ExitStack() as closing:
        if name is None:
            looked_up = look_up(way)
        else:
            root_fd = look_up(f"/proc/{pid}/root")
            closing.callback(os.close, root_fd)
            # The kernel has written this name: no part of it was a symbolic link.
            looked_up = look_up_in_root(root_fd, name, follows_links=False)
        closing.callback(os.close, looked_up)
        return HeldFile(opened_for_reading(looked_up, pid))


def _is_mapped(pid: int, mapping: Mapping, held: HeldFile) -> bool:
    # Read only now: the file is known to be one that needs no program to deliver its pages.
    with readable(pid), ProcessMemory(pid) as memory:
        expected = memory.read(mapping.start, _COMPARED)
    try:
        found = held.read(0, _COMPARED)
    except OSError:
        return False
    # The rest of a short file's page is zeros in memory.
    return found.ljust(_COMPARED, b"\0") == expected


def _refusal(pid: int, mapping: Mapping, denied: OSError | None) -> NotPermitted | NotPython:
    file = f"the file that process {pid} maps as {printable(mapping.path)}"
    if isinstance(denied, PermissionError):
        return NotPermitted(
            f"cannot open {file} ({denied.strerror})",
            remedy="Grant CAP_DAC_READ_SEARCH if its folder is closed to gilscope; if the file was "
            "replaced since the process started, grant CAP_CHECKPOINT_RESTORE or restart the "
            "process. `gilscope doctor -p PID` tells which.",
        )
    if denied is not None:
        return NotPermitted(
            f"{file} is not read: {denied.strerror}",
            remedy="Install the interpreter on another file system to have it traced.",
        )
    return NotPython(
        f"{file} is not on disk any more",
        remedy="Restart the process, so that it runs the installed interpreter.",
    )
