"""What /proc says about processes: pure parsers beside the two-line functions that read."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gilscope.values import dataclass

__all__ = [
    "Mapping",
    "ProcessStatus",
    "in_initial_pid_namespace",
    "is_alive",
    "is_ending",
    "list_pids",
    "list_tids",
    "maps_mention",
    "own_memory_ranges",
    "parse_beginning",
    "parse_cgroup",
    "parse_maps",
    "parse_status",
    "read_beginning",
    "read_cgroup",
    "read_command_line",
    "read_maps",
    "read_maps_text",
    "read_status",
    "read_thread_name",
    "was_started_with",
]

_PROC = Path("/proc")

_EXITING = 4
"""PF_EXITING of the kernel."""

_START_TIME, _START_STACK = 22 - 3, 28 - 3
"""As proc(5) counts the fields of /proc/PID/stat, but from the third one on."""

_INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the first pid namespace of a host: PROC_PID_INIT_INO of the kernel."""

_MAP_LINE = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)", re.DOTALL
)
_MAP_FIELDS = 5
_CONTAINER_ID = re.compile(r"(?:^|[/\-:])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_POD_UID = re.compile(r"pod([0-9a-f]{8}[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps that maps a file."""

    start: int
    end: int
    executable: bool
    offset: int
    inode: int
    path: str
    """As the process sees it, without the mark of a deleted file.

    As the kernel writes it: a newline as ``\\012``, which is also what four such characters in a
    name look like. It is for people; what it leads to has to be compared with *device* and *inode*.
    """
    is_deleted: bool
    device: int = 0
    """Of the file system, as `os.makedev` counts. On btrfs and overlayfs stat may say another."""

    @property
    def file(self) -> tuple[int, int, str]:
        """What two mappings of one file have in common, and those of two files have not."""
        return self.device, self.inode, self.path


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The lines of /proc/PID/status that gilscope uses."""

    name: str
    state: str
    tgid: int
    parent: int
    namespace_pids: tuple[int, ...]
    """The process' ids from this pid namespace inwards."""
    effective_capabilities: int
    seccomp: int
    """0 off, 1 strict, 2 filter."""
    has_shadow_stack: bool = False
    """Whether the processor compares return addresses with a second stack (x86, CET)."""


def parse_maps(text: str) -> tuple[Mapping, ...]:
    """Return the file mappings in the text of /proc/PID/maps."""
    mappings = []
    # At no other character that ends a line elsewhere: a name may have any of them.
    for line in text.split("\n"):
        found = _MAP_LINE.fullmatch(line)
        if found is None or not found[8].startswith("/"):
            continue
        path = found[8].removesuffix(" (deleted)")
        mappings.append(
            Mapping(
                start=int(found[1], 16),
                end=int(found[2], 16),
                executable="x" in found[3],
                offset=int(found[4], 16),
                inode=int(found[7]),
                path=path,
                is_deleted=path != found[8],
                device=os.makedev(int(found[5], 16), int(found[6], 16)),
            )
        )
    return tuple(mappings)


def own_memory_ranges(
    text: bytes, files: Iterable[tuple[int, int | None]]
) -> list[tuple[int, int]]:
    """Return start and end of what is mapped without a file, or of *files*, joined, in order.

    *files* are devices and inodes; None stands for every inode.
    """
    allowed = {
        (b"%02x:%02x" % (os.major(device), os.minor(device)), inode and b"%d" % inode)
        for device, inode in {*files, (0, 0)}
    }
    ranges: list[tuple[int, int]] = []
    for line in text.split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) < _MAP_FIELDS:
            continue
        device, inode = fields[3], fields[4]
        # Without a file both are 0; a file system may call an inode 0, but has a device.
        number = 0 if inode == b"0" else inode
        if (device, number) not in allowed and (device, None) not in allowed:
            continue
        start, _, end = fields[0].partition(b"-")
        low, high = int(start, 16), int(end, 16)
        if ranges and ranges[-1][1] == low:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges


def parse_status(text: str) -> ProcessStatus:
    """Return the facts in the text of /proc/PID/status; raises KeyError on another text."""
    lines = dict(line.split(":\t", 1) for line in text.split("\n") if ":\t" in line)
    return ProcessStatus(
        name=lines["Name"],
        state=lines["State"][:1],
        tgid=int(lines["Tgid"]),
        parent=int(lines["PPid"]),
        namespace_pids=tuple(int(pid) for pid in lines.get("NSpid", lines["Pid"]).split()),
        effective_capabilities=int(lines["CapEff"], 16),
        seccomp=int(lines.get("Seccomp", "0")),
        has_shadow_stack="shstk" in lines.get("x86_Thread_features", "").split(),
    )


def parse_cgroup(text: str) -> tuple[str | None, str | None]:
    """Return the container id and the pod uid in the text of /proc/PID/cgroup, if any."""
    container = _CONTAINER_ID.search(text.replace("\n", "/"))
    pod = _POD_UID.search(text)
    return (
        container[1] if container else None,
        pod[1].replace("_", "-") if pod else None,
    )


def in_initial_pid_namespace() -> bool:
    """Return whether gilscope sees processes as the host does."""
    return Path("/proc/self/ns/pid").stat().st_ino == _INITIAL_PID_NAMESPACE


def read_maps(pid: int) -> tuple[Mapping, ...]:
    """Return the file mappings of *pid*; raises OSError."""
    return parse_maps(os.fsdecode(read_maps_text(pid)))


def read_maps_text(pid: int) -> bytes:
    """Return the text of /proc/PID/maps; raises OSError."""
    return (_PROC / str(pid) / "maps").read_bytes()


def maps_mention(pid: int, words: Iterable[bytes]) -> bool:
    """Return whether *pid* maps anything whose path holds one of *words*; False if it is gone."""
    try:
        text = read_maps_text(pid)
    except OSError:
        return False
    return any(word in text for word in words)


def read_status(pid: int, tid: int | None = None) -> ProcessStatus:
    """Return the status of *pid*, or of its thread *tid*; raises OSError."""
    folder = _PROC / str(pid)
    if tid is not None:
        folder = folder / "task" / str(tid)
    return parse_status(os.fsdecode((folder / "status").read_bytes()))


def is_alive(pid: int) -> bool:
    """Return whether *pid* is a process that has not ended; a zombie has."""
    try:
        return read_status(pid).state not in {"Z", "X"}
    except (OSError, KeyError):
        return False


def is_ending(pid: int) -> bool:
    """Return whether *pid* has ended or is on its way out, which may take the kernel a while."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="surrogateescape")
    except OSError:
        return True
    # The name may hold anything; behind it come state, parent, group, session, terminal and its
    # group, and the flags.
    return bool(int(stat.rpartition(")")[2].split()[6]) & _EXITING)


def parse_beginning(text: str) -> tuple[int, int]:
    """Return what tells a program from others that ran, or will run, under the same number.

    In the text of /proc/PID/stat: when the process began, in clock ticks since the machine was
    started, and where the stack of its program began, 0 for who may not know.
    """
    # The name may hold anything; behind it come the third field and those that follow.
    fields = text.rpartition(")")[2].split()
    return int(fields[_START_TIME]), int(fields[_START_STACK])


def read_beginning(pid: int) -> tuple[int, int]:
    """Return that of *pid*; raises OSError."""
    return parse_beginning((_PROC / str(pid) / "stat").read_text(errors="surrogateescape"))


def read_command_line(pid: int) -> tuple[str, ...]:
    """Return the arguments of *pid*, which may have rewritten them; raises OSError."""
    raw = (_PROC / str(pid) / "cmdline").read_bytes()
    return tuple(os.fsdecode(part) for part in raw.rstrip(b"\0").split(b"\0")) if raw else ()


def was_started_with(pid: int, variable: bytes) -> bool:
    """Return whether *variable*, ``NAME=value``, is in the environment of *pid*; raises OSError.

    As it was at its start, unless a program has written its title over it. Nothing else of the
    environment, which may hold secrets, leaves this function.
    """
    return variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")


def read_thread_name(pid: int, tid: int) -> str:
    """Return the name of a thread, of which the kernel keeps 15 bytes; raises OSError."""
    return (_PROC / str(pid) / "task" / str(tid) / "comm").read_text(errors="replace").strip()


def read_cgroup(pid: int) -> tuple[str | None, str | None]:
    """Return container id and pod uid of *pid*, None where it has none or is gone."""
    try:
        return parse_cgroup((_PROC / str(pid) / "cgroup").read_text(errors="replace"))
    except OSError:
        return None, None


def list_pids() -> Iterator[int]:
    """Yield the ids of all processes in this pid namespace."""
    with os.scandir(_PROC) as entries:
        for entry in entries:
            if entry.name.isdigit():
                yield int(entry.name)


def list_tids(pid: int) -> tuple[int, ...]:
    """Return the thread ids of *pid*; raises OSError."""
    with os.scandir(_PROC / str(pid) / "task") as entries:
        return tuple(int(entry.name) for entry in entries)
