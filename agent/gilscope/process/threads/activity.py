"""What the kernel says a thread does: pure parsers beside the few lines that read."""

import os
from pathlib import Path

from gilscope.values import dataclass

__all__ = [
    "ThreadActivity",
    "parse_call",
    "parse_schedule",
    "parse_stat",
    "read_activity",
    "read_descriptor",
    "read_schedule",
]

_PROC = Path("/proc")
_ARGUMENTS = 6
_SCHEDULE_FIELDS = 3
_LONGEST = 4096
"""None of these files is longer; the kernel gives it in one read."""


@dataclass(frozen=True, slots=True)
class ThreadActivity:
    """A thread as the kernel sees it at one moment."""

    name: str
    state: str
    call: tuple[int, tuple[int, ...]] | None
    """Number and arguments of the system call that it sleeps in; None: in none, or not known."""
    schedule: tuple[int, int, int] | None
    """Time on a processor and time ready without one, both in ns, and how often it was given one.

    None for a kernel that does not count that.
    """

    @property
    def is_in_call(self) -> bool:
        """Whether it sleeps in a system call. Of one that runs, the call that was read is over."""
        return self.call is not None and self.state != "R"


def parse_stat(text: str) -> tuple[str, str]:
    """Return name and state in the text of /proc/PID/task/TID/stat; raises ValueError."""
    # The name may hold anything, brackets and newlines too; behind it there are numbers alone.
    before, bracket, behind = text.rpartition(")")
    _, opening, name = before.partition("(")
    fields = behind.split()
    if not (bracket and opening and fields):
        raise ValueError("no stat of a thread")
    return name, fields[0]


def parse_call(text: str) -> tuple[int, tuple[int, ...]] | None:
    """Return number and arguments in the text of /proc/PID/task/TID/syscall.

    None for a thread that runs, and for one that sleeps without having called the kernel, as in a
    page fault.
    """
    fields = text.split()
    if len(fields) <= _ARGUMENTS or not fields[0].isdecimal():
        return None
    return int(fields[0]), tuple(int(field, 16) for field in fields[1 : 1 + _ARGUMENTS])


def parse_schedule(text: str) -> tuple[int, int, int] | None:
    """Return the three numbers in the text of /proc/PID/task/TID/schedstat."""
    fields = text.split()
    if len(fields) != _SCHEDULE_FIELDS:
        return None
    cpu_ns, delay_ns, slices = map(int, fields)
    return cpu_ns, delay_ns, slices


def read_activity(pid: int, tid: int, *, proc: Path = _PROC) -> ThreadActivity:
    """Return what thread *tid* of *pid* does; raises OSError where it has gone.

    What it does may change between the reads: the schedule is of the beginning.
    """
    folder = _folder(pid, tid, proc)
    schedule = parse_schedule(_optional(folder, "schedstat"))
    call_text = _optional(folder, "syscall")
    name, state = parse_stat(_text(f"{folder}/stat"))
    return ThreadActivity(name, state, parse_call(call_text), schedule)


def read_schedule(pid: int, tid: int, *, proc: Path = _PROC) -> tuple[int, int, int] | None:
    """Return the `schedule` of thread *tid* of *pid* now; raises OSError where it has gone."""
    return parse_schedule(_optional(_folder(pid, tid, proc), "schedstat"))


def read_descriptor(pid: int, number: int, *, proc: Path = _PROC) -> str | None:
    """Return what descriptor *number* of *pid* leads to, None where it cannot be told."""
    try:
        return str((proc / str(pid) / "fd" / str(number)).readlink())
    except OSError:
        return None


# Samples of holders read these files all the time: a Path takes longer to be made than to be read.
def _folder(pid: int, tid: int, proc: Path) -> str:
    return f"{proc}/{pid}/task/{tid}"


def _optional(folder: str, name: str) -> str:
    # Kernels may lack the one, and permissions the other; both are empty in a zombie's folder.
    try:
        return _text(f"{folder}/{name}")
    except PermissionError:
        return ""
    except FileNotFoundError:
        if Path(folder).exists():
            return ""
        raise


def _text(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST).decode(errors="replace")
    finally:
        os.close(descriptor)
