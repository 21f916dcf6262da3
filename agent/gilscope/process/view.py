"""A process as it was at one moment: read once, and handed on."""

from collections.abc import Sequence

from gilscope.errors import NothingMapped
from gilscope.naming.process import is_worker, process_name, worker_name
from gilscope.process import procfs
from gilscope.process.access import not_a_process, readable
from gilscope.process.procfs import Mapping, ProcessStatus
from gilscope.values import dataclass

__all__ = ["ProcessView", "name_of", "view_of"]

_MOST_PARENTS = 8
"""A worker's workers have workers; no program is that deep."""


@dataclass(frozen=True, slots=True)
class ProcessView:
    """A process as it was at one moment: whoever reads it again may meet another."""

    pid: int
    mappings: tuple[Mapping, ...]
    status: ProcessStatus
    command_line: tuple[str, ...]
    container_id: str | None
    pod_uid: str | None
    beginning: tuple[int, int]
    """As of `procfs.read_beginning`."""
    name: str
    """Short: script, module or ``-m`` name."""

    def still_same(self) -> bool:
        """Return whether the number still stands for this process, and it runs the same program.

        Where it may not be looked into, and where addresses are not chosen at random, a new program
        can pass for the old one: whoever has its memory open knows for certain
        (`ProcessMemory.is_there`).
        """
        try:
            return procfs.read_beginning(self.pid) == self.beginning
        except OSError:
            return False


def view_of(pid: int) -> ProcessView:
    """Return process *pid* as it is now; raises NotPython or NotPermitted."""
    with readable(pid):
        beginning = procfs.read_beginning(pid)
        mappings, status = procfs.read_maps(pid), procfs.read_status(pid)
        command_line = procfs.read_command_line(pid)
        container_id, pod_uid = procfs.read_cgroup(pid)
        name = name_of(pid, command_line)
    if status.tgid != pid:
        raise not_a_process(pid, status.tgid)
    if not mappings:
        raise NothingMapped(f"process {pid} maps no files: it is a kernel thread or has just ended")
    return ProcessView(pid, mappings, status, command_line, container_id, pod_uid, beginning, name)


def name_of(pid: int, command_line: Sequence[str]) -> str:
    """Return the short name of process *pid*, which has that *command_line*.

    A worker of `multiprocessing` runs what Python gives it, under a command line of Python's own:
    it is called ``app.py worker`` after the program that has made it.
    """
    if not is_worker(command_line):
        return process_name(command_line)
    parent: Sequence[str] = ()
    for _ in range(_MOST_PARENTS):
        try:
            pid = procfs.read_status(pid).parent
            parent = procfs.read_command_line(pid)
        except OSError:
            break
        if not is_worker(parent):
            break
    # A worker whose program has gone is the child of the system's first process.
    is_known = pid > 1 and bool(parent) and not is_worker(parent)
    return worker_name(process_name(parent) if is_known else "")
