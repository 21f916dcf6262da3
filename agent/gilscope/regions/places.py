"""The maps in which processes read what their own threads have waited and held."""

import contextlib
import os
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gilscope.bpf.info import map_definition
from gilscope.bpf.locked_memory import with_locked_memory
from gilscope.bpf.map import Table
from gilscope.bpf.syscalls import create_map, freeze_map, map_update
from gilscope.gil.abi import REGION_HEAD

__all__ = ["Places"]

_FIRST = struct.pack("=I", 0)
_OWN_CLOCK = Path("/proc/self/ns/time")


class Places:
    """One map a process."""

    def __init__(self, tables: Mapping[str, Table], *, tells_holds: bool) -> None:
        """Use *tables* of probes that were loaded with regions.

        *tells_holds*: each process is in full mode.
        """
        self._tells_holds = tells_holds
        self._maps = tables["region_maps"]
        self._owners = tables["region_owners"]
        self._definition = map_definition(tables["region_prototype"].fileno())
        self.room = self._maps.entries
        """For how many processes."""

    def give(self, pid: int, namespace: tuple[int, int]) -> int:
        """Let waits of *pid* count in a new map, and return its descriptor; raises OSError.

        Nobody can write to it but the probes. The process knows its threads in pid *namespace*, a
        device and an inode.
        """
        self.take(pid)
        device, inode = namespace
        head = {
            "namespace_device": device,
            "namespace_inode": inode,
            "tells_holds": int(self._tells_holds and _has_own_clock(pid)),
        }
        definition = replace(self._definition, name="region_places")
        # Those of the probes were made with a limit that is not raised any more.
        fd = with_locked_memory(lambda: create_map(definition))
        try:
            map_update(fd, _FIRST, REGION_HEAD.layout().pack(head))
            freeze_map(fd)
            self._maps.put({"value": pid}, {"value": fd})
        except BaseException:
            os.close(fd)
            raise
        return fd

    def take(self, pid: int) -> None:
        """Let waits of *pid* count nowhere any more but in the account."""
        self._maps.delete({"value": pid})
        self._owners.delete_where("tgid", pid)


def _has_own_clock(pid: int) -> bool:
    """Return whether *pid* is in the agent's time namespace: it reads since when it has held."""
    with contextlib.suppress(FileNotFoundError):  # a kernel without them, before Linux 5.6
        return os.path.samestat(Path(f"/proc/{pid}/ns/time").stat(), _OWN_CLOCK.stat())
    return True
