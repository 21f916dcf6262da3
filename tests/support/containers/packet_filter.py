"""A tiny BPF program, assembled here, that the kernel runs when the test asks for it.

Known answer: each run of `PacketFilter` with 12 bytes (a u64 and a u32) puts these 12 bytes into
its ring and answers 0; if the u32 is not 0, the record is discarded instead. It answers -EAGAIN,
and puts nothing in, when the ring has no room.
"""

import ctypes
import errno
import os
import struct
from types import TracebackType
from typing import Self

from gilscope.bpf.commands import Command, MapType
from gilscope.system.syscall import call

__all__ = ["PacketFilter", "create_ring_map"]

_BPF_PROG_TEST_RUN = 10
_BPF_PROG_TYPE_SOCKET_FILTER = 1

_SKB_LOAD_BYTES = 26
_RINGBUF_RESERVE = 131
_RINGBUF_SUBMIT = 132
_RINGBUF_DISCARD = 133

_ETHERNET_HEADER = bytes(14)


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return call("bpf", command, buffer, len(attributes)), buffer.raw


def create_ring_map(size: int) -> int:
    """Create a ring buffer of *size* bytes and return its descriptor."""
    return _bpf(Command.MAP_CREATE, struct.pack("=IIIII", MapType.RINGBUF, 0, 0, size, 0))[0]


def _instruction(
    code: int, target: int = 0, source: int = 0, offset: int = 0, immediate: int = 0
) -> bytes:
    return struct.pack("=BBhi", code, target | source << 4, offset, immediate)


def _program(ring_fd: int) -> bytes:
    return b"".join(
        (
            # The 12 bytes behind the Ethernet header go to the stack, at r10 - 16.
            _instruction(0xB7, 2, immediate=0),  # r2 = 0
            _instruction(0xBF, 3, 10),  # r3 = r10
            _instruction(0x07, 3, immediate=-16),  # r3 += -16
            _instruction(0xB7, 4, immediate=12),  # r4 = 12
            _instruction(0x85, immediate=_SKB_LOAD_BYTES),
            _instruction(0x55, 0, offset=7),  # if r0 != 0: exit, two steps on from "no room"
            _instruction(0x18, 1, 1, immediate=ring_fd),  # r1 = the map, first half
            _instruction(0),  # and second half
            _instruction(0xB7, 2, immediate=12),  # r2 = 12
            _instruction(0xB7, 3, immediate=0),  # r3 = 0
            _instruction(0x85, immediate=_RINGBUF_RESERVE),
            _instruction(0x55, 0, offset=2),  # if r0 != 0: over "no room"
            _instruction(0xB7, 0, immediate=-errno.EAGAIN),  # no room
            _instruction(0x95),  # exit
            _instruction(0xBF, 1, 0),  # r1 = r0, the record
            _instruction(0x79, 2, 10, offset=-16),  # r2 = the u64
            _instruction(0x7B, 1, 2, offset=0),
            _instruction(0x61, 3, 10, offset=-8),  # r3 = the u32
            _instruction(0x63, 1, 3, offset=8),
            _instruction(0xB7, 2, immediate=0),  # r2 = 0, flags
            _instruction(0x55, 3, offset=3),  # if r3 != 0: to the discarding
            _instruction(0x85, immediate=_RINGBUF_SUBMIT),
            _instruction(0xB7, 0, immediate=0),  # r0 = 0
            _instruction(0x95),  # exit
            _instruction(0x85, immediate=_RINGBUF_DISCARD),
            _instruction(0xB7, 0, immediate=0),  # r0 = 0
            _instruction(0x95),  # exit
        )
    )


class PacketFilter:
    """The program, loaded. Leaves the ring's descriptor to its owner."""

    def __init__(self, ring_fd: int, name: str = "tiny") -> None:
        code = _program(ring_fd)
        instructions = ctypes.create_string_buffer(code, len(code))
        licence = ctypes.create_string_buffer(b"GPL")
        # union bpf_attr, load: prog_type, insn_cnt, insns, license, log_level, log_size, log_buf,
        # kern_version, prog_flags, prog_name.
        attributes = struct.pack(
            "=IIQQIIQII16s",
            _BPF_PROG_TYPE_SOCKET_FILTER,
            len(code) // 8,
            ctypes.addressof(instructions),
            ctypes.addressof(licence),
            0,
            0,
            0,
            0,
            0,
            name.encode(),
        )
        self.fd, _ = _bpf(Command.PROG_LOAD, attributes)

    def run(self, number: int, *, discard: bool = False, times: int = 1) -> int:
        """Run it *times* times with the same record; return the answer of the last."""
        packet = _ETHERNET_HEADER + struct.pack("=QI", number, discard)
        held = ctypes.create_string_buffer(packet, len(packet))
        # union bpf_attr, test: prog_fd, retval, data_size_in, data_size_out, data_in, data_out,
        # repeat, duration.
        attributes = struct.pack(
            "=IIIIQQII", self.fd, 0, len(packet), 0, ctypes.addressof(held), 0, times, 0
        )
        _, answer = _bpf(_BPF_PROG_TEST_RUN, attributes)
        result: int = struct.unpack_from("=i", answer, 4)[0]
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.fd)
