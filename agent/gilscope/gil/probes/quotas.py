"""Tells the probes what has been taken out of their tables, so that a process may have more again.

The probes count what each process has put into the tables that all share, and here it is counted
what has left them: each number has one writer, and the difference is what is there.
"""

from gilscope.bpf.map import Table
from gilscope.gil.abi import QUOTAS, Quota

__all__ = ["Quotas"]


class Quotas:
    """What has left the tables, for each traced process."""

    def __init__(self, returned: Table) -> None:
        """Write to *returned*, the probe's table of that name."""
        self._table = returned
        self._slots: dict[int, int] = {}
        self._returned: dict[int, list[int]] = {}

    def begin(self, pid: int, slot: int) -> None:
        """Let *pid*, which has *slot* and nothing in any table, begin anew."""
        self._slots[pid] = slot
        self._returned[pid] = [0] * QUOTAS
        self._write(pid)

    def forget(self, pid: int) -> None:
        """Drop what is known of *pid*."""
        self._slots.pop(pid, None)
        self._returned.pop(pid, None)

    def give_back(self, pid: int, quota: Quota, entries: int) -> None:
        """Let *pid* have so many *entries* more, for as many have left a table or the ring."""
        returned = self._returned.get(pid)
        if returned is not None and entries:
            returned[quota] = (returned[quota] + entries) % (1 << 32)
            self._write(pid)

    def _write(self, pid: int) -> None:
        self._table.put({"value": self._slots[pid]}, {"entries": tuple(self._returned[pid])})
