"""A process as it was at one moment: read once, and handed on."""

from dataclasses import dataclass

from gilscope.errors import NotPython
from gilscope.process import procfs
from gilscope.process.access import readable
from gilscope.process.procfs import Mapping, ProcessStatus

__all__ = ["ProcessView", "view_of"]


@dataclass(frozen=True, slots=True)
class ProcessView:
    """A process as it was at one moment: read again, it may be another."""

    pid: int
    mappings: tuple[Mapping, ...]
    status: ProcessStatus


def view_of(pid: int) -> ProcessView:
    """Return process *pid* as it is now; raises NotPython or NotPermitted."""
    with readable(pid):
        mappings, status = procfs.read_maps(pid), procfs.read_status(pid)
    if not mappings:
        raise NotPython(f"process {pid} maps no files: it is a kernel thread or has just ended")
    return ProcessView(pid, mappings, status)
