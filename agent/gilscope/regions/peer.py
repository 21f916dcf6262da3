"""Who is at the other end of a Unix socket, by what the kernel says."""

import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["UnknownPeer", "known_peer"]

_CREDENTIALS = struct.Struct("=iII")
_SO_PEERPIDFD = 77
"""Linux 6.5."""


class UnknownPeer(Exception):
    """It has ended, is in no pid namespace that the agent sees, or is somebody else by now."""


@contextmanager
def known_peer(connection: socket.socket) -> Iterator[int]:
    """Yield the process that has connected; raises UnknownPeer.

    Where it has ended by the end of the block, UnknownPeer is raised there: whatever was found out
    by its number in between may be another process'.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if pid <= 0:
        raise UnknownPeer("it is in another pid namespace")
    pidfd = _pidfd_of(connection, pid)
    try:
        if _effective_uid(pid) != uid:
            raise UnknownPeer(f"process {pid} has changed its user")
        yield pid
        if select.select([pidfd], [], [], 0)[0]:
            raise UnknownPeer(f"process {pid} has ended")
    finally:
        os.close(pidfd)


def _pidfd_of(connection: socket.socket, pid: int) -> int:
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass  # it has ended, or the kernel is too old
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        raise UnknownPeer(f"process {pid} has ended") from error


def _effective_uid(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError as error:
        raise UnknownPeer(f"process {pid} has ended") from error
    fields = next(line for line in text.splitlines() if line.startswith("Uid:")).split()
    return int(fields[2])
