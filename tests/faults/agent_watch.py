"""Watches agents while they run: what of BPF they hold, and what they take of the machine."""

import contextlib
import threading
from dataclasses import dataclass, field
from pathlib import Path

from faults.bpf_objects import BpfObject, objects_of

__all__ = ["AgentFigures", "AgentWatch", "with_descendants"]

_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """What an agent and the processes that it has started take at one moment."""

    descriptors: int
    threads: int
    resident_kib: int
    private_kib: int


@dataclass(slots=True)
class AgentWatch:
    """Notes the BPF objects of agents as long as these live, however suddenly they end."""

    objects: set[BpfObject] = field(default_factory=set)
    _pids: set[int] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def add(self, pid: int) -> None:
        """Watch the agent *pid* from now on."""
        self._pids.add(pid)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def note(self) -> None:
        """Look now."""
        for pid in list(self._pids):
            family = with_descendants(pid)
            if not family:
                self._pids.discard(pid)
            for member in family:
                self.objects |= objects_of(member)

    def figures(self, pid: int) -> AgentFigures:
        """Return what the agent *pid* takes now."""
        parts = [_figures_of(member) for member in with_descendants(pid)]
        return AgentFigures(
            descriptors=sum(part.descriptors for part in parts),
            threads=sum(part.threads for part in parts),
            resident_kib=sum(part.resident_kib for part in parts),
            private_kib=sum(part.private_kib for part in parts),
        )

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self.note()


def with_descendants(pid: int) -> list[int]:
    """Return *pid* and all that it and its children have started; nothing where it has ended."""
    found = []
    waiting = [pid]
    while waiting:
        member = waiting.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
            found.append(member)
    return found


def _figures_of(pid: int) -> AgentFigures:
    values = {}
    with contextlib.suppress(OSError):
        for name in ("status", "smaps_rollup"):
            for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
                key, _, value = line.partition(":")
                values[key] = value.split()
    descriptors = 0
    with contextlib.suppress(OSError):
        descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())

    def number(name: str) -> int:
        return int(values[name][0]) if values.get(name) else 0

    private = number("Private_Clean") + number("Private_Dirty")
    return AgentFigures(descriptors, number("Threads"), number("VmRSS"), private)
