"""Numbers of <linux/bpf.h>, the same on every processor."""

from enum import IntEnum

__all__ = ["AttachType", "Command", "MapType", "ProgramType"]


class Command(IntEnum):
    """``enum bpf_cmd``: what the system call is to do."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    MAP_GET_NEXT_KEY = 4
    PROG_LOAD = 5
    OBJ_GET_INFO_BY_FD = 15
    RAW_TRACEPOINT_OPEN = 17
    MAP_FREEZE = 22
    MAP_LOOKUP_BATCH = 24
    LINK_CREATE = 28
    ENABLE_STATS = 32


class MapType(IntEnum):
    """``enum bpf_map_type``."""

    ARRAY = 2
    RINGBUF = 27


class ProgramType(IntEnum):
    """``enum bpf_prog_type``."""

    KPROBE = 2
    RAW_TRACEPOINT = 17


class AttachType(IntEnum):
    """``enum bpf_attach_type``, of programs that are bound to one."""

    NONE = 0
    TRACE_UPROBE_MULTI = 48
