"""What the kernel says about the BPF programs and maps that the agent holds: time, runs, memory.

A program's run time and run count grow only while somebody in the system keeps the statistics
switched on (`enable_run_statistics`, or the sysctl kernel.bpf_stats_enabled); they cost two clock
readings a run. What this kernel is too old to tell is None.
"""

import ctypes
import struct
from pathlib import Path

from gilscope.bpf.commands import Command
from gilscope.bpf.compile.object import MapDefinition
from gilscope.system.syscall import call
from gilscope.values import dataclass

__all__ = [
    "MapStatistics",
    "ProgramStatistics",
    "enable_run_statistics",
    "map_definition",
    "map_statistics",
    "program_statistics",
]

_BPF_STATS_RUN_TIME = 0

# struct bpf_prog_info of <linux/bpf.h>, the same on every 64-bit machine. What gilscope needs of a
# kernel (ring buffers, 5.8) includes everything up to run_cnt, but not what follows.
_NAME = 64  # name, 16 bytes, since 4.15
_RUN_TIME_NS = 192  # run_time_ns, 64 bits, since 5.1
_RUN_COUNT = 200  # run_cnt, 64 bits, since 5.1
_RECURSION_MISSES = 208  # recursion_misses, 64 bits, since 5.12
_PROGRAM_INFO_SIZE = 216

# struct bpf_map_info: type, id, key_size, value_size, max_entries; since Linux 4.13. Then map_flags
# and name, since 4.15.
_MAP_INFO = struct.Struct("=IIIII")
_MAP_DEFINITION = struct.Struct("=IIIIII16s")

_FDINFO = Path("/proc/self/fdinfo")


@dataclass(frozen=True, slots=True)
class ProgramStatistics:
    """One loaded program, all CPUs together, since it was loaded."""

    name: str
    """Its first 15 characters."""
    run_time_ns: int | None
    """Only what ran while statistics were on."""
    run_count: int | None
    """Only what ran while statistics were on."""
    recursion_misses: int | None
    """Runs that were left out because a program was already running on that CPU; always counted."""


@dataclass(frozen=True, slots=True)
class MapStatistics:
    """One map."""

    type: int
    """A BPF_MAP_TYPE_ number."""
    max_entries: int
    """Of a ring buffer: its bytes."""
    memlock_bytes: int | None
    """Kernel memory; before Linux 6.4 an estimate from the sizes, since then what is really used.

    None where /proc does not tell.
    """


def program_statistics(fd: int) -> ProgramStatistics:
    """Return what the kernel counts about the program behind *fd*; raises OSError."""
    raw = _information(fd, _PROGRAM_INFO_SIZE)
    name = raw[_NAME : _NAME + 16].partition(b"\0")[0]
    return ProgramStatistics(
        name=name.decode(errors="replace"),
        run_time_ns=_counter(raw, _RUN_TIME_NS),
        run_count=_counter(raw, _RUN_COUNT),
        recursion_misses=_counter(raw, _RECURSION_MISSES),
    )


def map_statistics(fd: int) -> MapStatistics:
    """Return what the kernel tells about the map behind *fd*; raises OSError."""
    kind, _, _, _, max_entries = _MAP_INFO.unpack(_information(fd, _MAP_INFO.size))
    return MapStatistics(kind, max_entries, _memlock_bytes(fd))


def map_definition(fd: int) -> MapDefinition:
    """Return what the map behind *fd* was made from; raises OSError."""
    raw = _information(fd, _MAP_DEFINITION.size)
    kind, _, key_size, value_size, max_entries, flags, name = _MAP_DEFINITION.unpack(raw)
    return MapDefinition(
        name=name.partition(b"\0")[0].decode(errors="replace"),
        type=kind,
        key_size=key_size,
        value_size=value_size,
        max_entries=max_entries,
        flags=flags,
    )


def enable_run_statistics() -> int:
    """Have all programs of the system timed and counted until the returned descriptor is closed.

    Needs Linux 5.8 and CAP_SYS_ADMIN; raises OSError (EINVAL, EPERM).
    """
    return _bpf(Command.ENABLE_STATS, bytearray(struct.pack("=I", _BPF_STATS_RUN_TIME)))


def _information(fd: int, size: int) -> bytes:
    """Return up to *size* bytes of what describes *fd*: less where the kernel knows less."""
    content = ctypes.create_string_buffer(size)
    # union bpf_attr, info: bpf_fd, info_len, info. The kernel writes to info_len how much it knows.
    attributes = bytearray(struct.pack("=IIQ", fd, size, ctypes.addressof(content)))
    _bpf(Command.OBJ_GET_INFO_BY_FD, attributes)
    (known,) = struct.unpack_from("=I", attributes, 4)
    return content.raw[:known]


def _counter(raw: bytes, offset: int) -> int | None:
    if len(raw) < offset + 8:
        return None
    count: int = struct.unpack_from("=Q", raw, offset)[0]
    return count


def _memlock_bytes(fd: int) -> int | None:
    try:
        lines = (_FDINFO / str(fd)).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "memlock":
            return int(value)
    return None


def _bpf(command: int, attributes: bytearray) -> int:
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    return call("bpf", command, buffer, len(attributes))
