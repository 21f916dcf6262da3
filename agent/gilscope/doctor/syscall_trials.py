"""Tries the system calls that gilscope needs, each in a child, and says how the kernel answered.

A child, because a seccomp filter may kill whoever makes a forbidden call. Nothing that a child
makes outlives it. The layouts are those of <linux/bpf.h> and <linux/perf_event.h>.
"""

import ctypes
import errno
import mmap
import os
import struct
from collections.abc import Callable, Mapping
from enum import Enum

from gilscope.bpf.commands import AttachType, Command, MapType, ProgramType
from gilscope.system.syscall import attempt

__all__ = ["KILLED", "Attempt", "make_attempts"]

KILLED = -1
"""Instead of an errno: the kernel killed the child for making the call."""

_NO_COMMAND, _NO_FLAG = 0xFFFF, 0xFFFFFFFF
_PERF_ATTR_SIZE = 112
_SOFTWARE, _TASK_CLOCK = 1, 1
_EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 5, 1 << 6

# Part of the file, and nothing that a process ever executes.
_OWN_PROGRAM, _ELF_HEADER = b"/proc/self/exe", 0

# Instructions of eBPF: operation, registers (source in the high half), offset, immediate.
_MOV_IMM, _MOV_REG, _ADD_IMM, _CALL, _EXIT = 0xB7, 0xBF, 0x07, 0x85, 0x95
_STACK = 0xA0
"""Source register r10: the frame pointer."""
_PROBE_READ_USER, _NS_CURRENT_PID_TGID = 112, 120


class Attempt(Enum):
    """One call, or a few that belong together."""

    BPF_REACHED = "bpf with a command that does not exist"
    """EINVAL means that the call reached the kernel's code, so no filter forbids it."""
    PERF_REACHED = "perf_event_open with a flag that does not exist"
    """The same; and the kernel looks at the flags before it looks at any permission."""
    PERF_EVENT = "open a performance event of this process"
    """What anybody may do, unless the distribution's kernel is told to refuse it."""
    MAP = "create a BPF map"
    RING = "create a BPF ring buffer"
    PROGRAM = "load a BPF program that reads user memory"
    NAMESPACE_PROGRAM = "load a BPF program that asks for the pid in a namespace"
    RAW_TRACEPOINT = "attach a BPF program to raw tracepoint sched_process_exit"
    UPROBE = "place a uprobe in this process"
    PIDFD = "open a pidfd"


def make_attempts(uprobe_type: str | None, *, uses_links: bool) -> Mapping[Attempt, int]:
    """Return the errno of every attempt, 0 for success, or `KILLED`.

    *uses_links*: uprobes are to be placed by BPF links; otherwise by perf events of *uprobe_type*.
    """
    actions: dict[Attempt, Callable[[], int]] = {
        Attempt.BPF_REACHED: lambda: _bpf(_NO_COMMAND, bytes(8)),
        Attempt.PERF_REACHED: _perf_without_meaning,
        Attempt.PERF_EVENT: _open_software_event,
        Attempt.MAP: lambda: _create_map(MapType.ARRAY, key_size=4, value_size=4, entries=1),
        # The entries of a ring buffer are its bytes, whole pages of them.
        Attempt.RING: lambda: _create_map(
            MapType.RINGBUF, key_size=0, value_size=0, entries=mmap.PAGESIZE
        ),
        Attempt.PROGRAM: lambda: _load(ProgramType.KPROBE, _reading_program()),
        Attempt.NAMESPACE_PROGRAM: lambda: _load(ProgramType.KPROBE, _namespace_program()),
        Attempt.RAW_TRACEPOINT: _open_raw_tracepoint,
        Attempt.UPROBE: _link_uprobe if uses_links else lambda: _open_uprobe(uprobe_type),
        Attempt.PIDFD: lambda: os.pidfd_open(os.getpid()),
    }
    return {attempt: _in_child(action) for attempt, action in actions.items()}


def _in_child(action: Callable[[], int]) -> int:
    child = os.fork()
    if not child:
        number = errno.EIO
        try:
            number = _errno_of(action)
        finally:
            os._exit(number)
    _, status = os.waitpid(child, 0)
    return KILLED if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def _errno_of(action: Callable[[], int]) -> int:
    try:
        return max(0, -action())
    except OSError as error:
        return error.errno or errno.EIO


def _bpf(command: int, attributes: bytes) -> int:
    held = ctypes.create_string_buffer(attributes, len(attributes))
    return attempt("bpf", command, held, len(attributes))


def _create_map(kind: int, *, key_size: int, value_size: int, entries: int) -> int:
    # map_type, key_size, value_size, max_entries, map_flags
    return _bpf(Command.MAP_CREATE, struct.pack("=IIIII", kind, key_size, value_size, entries, 0))


def _load(kind: int, instructions: bytes, attach_type: int = 0) -> int:
    code = ctypes.create_string_buffer(instructions, len(instructions))
    # The helpers that read memory are for programs under the GPL, as gilscope's probes are.
    licence = ctypes.create_string_buffer(b"GPL")
    return _bpf(
        Command.PROG_LOAD,
        # prog_type, insn_cnt, insns, license, then nothing up to expected_attach_type
        struct.pack(
            "=IIQQ44xI",
            kind,
            len(instructions) // 8,
            ctypes.addressof(code),
            ctypes.addressof(licence),
            attach_type,
        ),
    )


def _instruction(operation: int, registers: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("=BBhi", operation, registers, 0, immediate)


def _return_zero() -> bytes:
    return _instruction(_MOV_IMM, 0) + _instruction(_EXIT)


def _reading_program() -> bytes:
    # The helper's arguments: 8 bytes on the stack, their number, address 0.
    return (
        _instruction(_MOV_REG, _STACK | 1)
        + _instruction(_ADD_IMM, 1, -8)
        + _instruction(_MOV_IMM, 2, 8)
        + _instruction(_MOV_IMM, 3, 0)
        + _instruction(_CALL, 0, _PROBE_READ_USER)
        + _return_zero()
    )


def _namespace_program() -> bytes:
    # The helper's arguments: a device and an inode of no importance, 8 bytes on the stack.
    return (
        _instruction(_MOV_IMM, 1, 1)
        + _instruction(_MOV_IMM, 2, 1)
        + _instruction(_MOV_REG, _STACK | 3)
        + _instruction(_ADD_IMM, 3, -8)
        + _instruction(_MOV_IMM, 4, 8)
        + _instruction(_CALL, 0, _NS_CURRENT_PID_TGID)
        + _return_zero()
    )


def _open_raw_tracepoint() -> int:
    program = _load(ProgramType.RAW_TRACEPOINT, _return_zero())
    if program < 0:
        return program
    name = ctypes.create_string_buffer(b"sched_process_exit")
    return _bpf(
        Command.RAW_TRACEPOINT_OPEN, struct.pack("=QII", ctypes.addressof(name), program, 0)
    )


def _perf_without_meaning() -> int:
    return attempt("perf_event_open", None, 0, -1, -1, ctypes.c_ulong(_NO_FLAG))


def _link_uprobe() -> int:
    program = _load(ProgramType.KPROBE, _return_zero(), AttachType.TRACE_UPROBE_MULTI)
    if program < 0:
        return program
    path = ctypes.create_string_buffer(_OWN_PROGRAM)
    offsets = (ctypes.c_uint64 * 1)(_ELF_HEADER)
    # prog_fd, target_fd, attach_type, flags, path, offsets, two more arrays, cnt, flags, pid
    return _bpf(
        Command.LINK_CREATE,
        struct.pack(
            "=IIIIQQQQIIII",
            program,
            0,
            AttachType.TRACE_UPROBE_MULTI,
            0,
            ctypes.addressof(path),
            ctypes.addressof(offsets),
            0,
            0,
            1,
            0,
            os.getpid(),
            0,
        ),
    )


def _open_uprobe(uprobe_type: str | None) -> int:
    if uprobe_type is None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    path = ctypes.create_string_buffer(_OWN_PROGRAM)
    return _perf_event_open(int(uprobe_type), uprobe_path=ctypes.addressof(path))


def _open_software_event() -> int:
    return _perf_event_open(_SOFTWARE, config=_TASK_CLOCK, flags=_EXCLUDE_KERNEL | _EXCLUDE_HV)


def _perf_event_open(kind: int, *, config: int = 0, flags: int = 0, uprobe_path: int = 0) -> int:
    # type, size, config, sample_period, sample_type, read_format, flags, wakeup_events, bp_type,
    # uprobe_path, probe_offset; the rest is zero.
    attributes = struct.pack(
        "=IIQ24xQ8xQQ", kind, _PERF_ATTR_SIZE, config, flags, uprobe_path, _ELF_HEADER
    ).ljust(_PERF_ATTR_SIZE, b"\0")
    held = ctypes.create_string_buffer(attributes, len(attributes))
    return attempt("perf_event_open", held, 0, -1, -1, ctypes.c_ulong(0))
