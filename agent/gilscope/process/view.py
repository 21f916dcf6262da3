"""A process as it was at one moment: read once, and handed on."""

from dataclasses import dataclass

from gilscope.errors import NothingMapped
from gilscope.naming.process import process_name
from gilscope.process import procfs
from gilscope.process.access import not_a_process, readable
from gilscope.process.procfs import Mapping, ProcessStatus

__all__ = ["ProcessView", "view_of"]


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

    @property
    def name(self) -> str:
        """Short name made from the command line: script, module or ``-m`` name."""
        return process_name(self.command_line)

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
    if status.tgid != pid:
        raise not_a_process(pid, status.tgid)
    if not mappings:
        raise NothingMapped(f"process {pid} maps no files: it is a kernel thread or has just ended")
    return ProcessView(pid, mappings, status, command_line, container_id, pod_uid, beginning)
