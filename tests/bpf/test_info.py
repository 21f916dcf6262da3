"""What the kernel tells about a program that has run a known number of times, and about maps."""

import mmap
import os
from collections.abc import Iterator

import pytest

from gilscope.bpf.info import enable_run_statistics, map_statistics, program_statistics
from gilscope.bpf.syscalls import create_array_map
from support.containers.packet_filter import PacketFilter, create_ring_map

pytestmark = pytest.mark.live

_ARRAY = 2
_RING = 27


@pytest.fixture
def ring_fd() -> Iterator[int]:
    """A ring buffer of two pages."""
    fd = create_ring_map(2 * mmap.PAGESIZE)
    yield fd
    os.close(fd)


def test_runs_are_counted_while_statistics_are_on(ring_fd: int) -> None:
    """
    Every run is counted once and timed, and the descriptor is what keeps that switched on.
    """
    with PacketFilter(ring_fd, name="counted_program") as program:
        before = program_statistics(program.fd)
        switch = enable_run_statistics()
        kept_by = os.readlink(f"/proc/self/fd/{switch}")  # noqa: PTH115 - leads to no path
        program.run(1, discard=True, times=1000)
        during = program_statistics(program.fd)
        os.close(switch)
        program.run(1, discard=True, times=5)
        after = program_statistics(program.fd)

    assert ("counted_program", 0, 0, 0) == (
        before.name,
        before.run_time_ns,
        before.run_count,
        before.recursion_misses,
    )
    assert 1000 == during.run_count
    assert during.run_time_ns
    assert "anon_inode:bpf-stats" == kept_by
    # The switch is the whole machine's: somebody else may keep it on.
    assert after.run_count in range(1000, 1006)


def test_maps_tell_type_size_and_memory(ring_fd: int) -> None:
    """
    The size of a ring is in bytes, that of other maps in entries; its memory is more than that.
    """
    array_fd = create_array_map()
    array, ring = map_statistics(array_fd), map_statistics(ring_fd)
    os.close(array_fd)

    assert (_ARRAY, 1) == (array.type, array.max_entries)
    assert (_RING, 2 * mmap.PAGESIZE) == (ring.type, ring.max_entries)
    assert ring.memlock_bytes is not None
    assert 2 * mmap.PAGESIZE < ring.memlock_bytes < 2 * mmap.PAGESIZE + (1 << 16)
