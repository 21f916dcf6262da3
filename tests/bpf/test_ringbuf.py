"""A ring buffer of the kernel's, filled by a BPF program that says how often it could not."""

import errno
import itertools
import mmap
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.bpf.map import RecordLayout
from gilscope.bpf.ringbuf import Ring
from support.commands.gilscope import eventually
from support.containers.packet_filter import PacketFilter, create_ring_map

pytestmark = pytest.mark.live

_LAYOUT = RecordLayout(12, (("number", 0, "Q", 0), ("discarded", 8, "I", 0)))
_NO_ROOM = -errno.EAGAIN
# A record takes 8 + 12 bytes, rounded up to 24; one byte of the ring is never used.
_CAPACITY = (mmap.PAGESIZE - 1) // 24
_POLL = 7
"""The number of the system call."""


@pytest.fixture
def ring() -> Iterator[Ring]:
    """A ring of one page."""
    made = Ring("notices", create_ring_map(mmap.PAGESIZE), _LAYOUT)
    yield made
    made.close()


@pytest.fixture
def producer(ring: Ring) -> Iterator[PacketFilter]:
    """What fills it."""
    with PacketFilter(ring.fileno()) as loaded:
        yield loaded


def _numbers(ring: Ring) -> list[int]:
    return [record["number"] for record in ring.drain()]


def test_records_come_out_as_they_went_in(ring: Ring, producer: PacketFilter) -> None:
    """
    What is put in is taken out once, in order; an empty ring gives nothing.
    """
    answers = [producer.run(number) for number in (1 << 63, 7, 0)]

    assert [0, 0, 0] == answers
    assert [
        {"number": 1 << 63, "discarded": 0},
        {"number": 7, "discarded": 0},
        {"number": 0, "discarded": 0},
    ] == list(ring.drain())
    assert [] == list(ring.drain())


def test_discarded_record_is_skipped(ring: Ring, producer: PacketFilter) -> None:
    """
    Those before and after it come out, and its room is given back.
    """
    for number in range(6):
        producer.run(number, discard=number in {0, 3, 5})

    assert [1, 2, 4] == _numbers(ring)
    assert 0 == producer.run(9, times=_CAPACITY)
    assert [9] * _CAPACITY == _numbers(ring)


def test_full_ring_refuses_and_goes_on(ring: Ring, producer: PacketFilter) -> None:
    """
    What does not fit is refused, what is in stays; taken records make room again.
    """
    answers = [producer.run(number) for number in range(_CAPACITY + 5)]

    assert [0] * _CAPACITY + [_NO_ROOM] * 5 == answers
    # Three taken: three more fit.
    taken = ring.drain()
    assert [0, 1, 2] == [next(taken)["number"] for _ in range(3)]
    assert [0, 0, 0, _NO_ROOM] == [producer.run(number) for number in range(1000, 1004)]
    assert [*range(3, _CAPACITY), 1000, 1001, 1002] == _numbers(ring)


def test_more_records_than_fit_while_they_are_taken(ring: Ring, producer: PacketFilter) -> None:
    """
    The kernel writes on one CPU while they are read on another: all arrive, in order, many laps.
    """
    wanted = 100 * _CAPACITY

    def produce() -> None:
        for number in range(wanted):
            while producer.run(number) == _NO_ROOM:
                pass

    thread = threading.Thread(target=produce)
    thread.start()
    poller = select.poll()
    poller.register(ring, select.POLLIN)
    taken: list[int] = []
    while len(taken) < wanted and poller.poll(30_000):
        taken += _numbers(ring)
    thread.join()

    assert list(range(wanted)) == taken
    assert [] == _numbers(ring)


def test_what_comes_while_draining_may_wait(ring: Ring, producer: PacketFilter) -> None:
    """
    A drain takes what was there when it began, so it ends however fast records come.
    """
    producer.run(0)
    seen = []
    for record in itertools.islice(ring.drain(), 10):
        seen.append(record["number"])
        producer.run(record["number"] + 1)

    assert [0] == seen
    assert [1] == _numbers(ring)


def test_poll_says_when_there_is_something(ring: Ring, producer: PacketFilter) -> None:
    """
    Readable from the first record until all are taken.
    """
    poller = select.poll()
    poller.register(ring, select.POLLIN)
    readable = [(ring.fileno(), select.POLLIN)]

    assert [] == poller.poll(0)
    producer.run(1)
    producer.run(2)
    assert readable == poller.poll(0)
    next(ring.drain())
    assert readable == poller.poll(0)
    assert [2] == _numbers(ring)
    assert [] == poller.poll(0)


def test_record_wakes_a_sleeper(ring: Ring, producer: PacketFilter) -> None:
    """
    Who sleeps in poll wakes up for a record.
    """
    poller = select.poll()
    poller.register(ring, select.POLLIN)
    woken: list[list[tuple[int, int]]] = []
    sleeper = threading.Thread(target=lambda: woken.append(poller.poll(30_000)))
    sleeper.start()
    call = Path(f"/proc/self/task/{sleeper.native_id}/syscall")
    eventually(lambda: call.read_text().startswith(f"{_POLL} "))
    producer.run(1)
    sleeper.join()

    assert [[(ring.fileno(), select.POLLIN)]] == woken


def _mapped_rings() -> int:
    # The probes that other tests share have one, too.
    return Path("/proc/self/maps").read_text().count("bpf-map")


def test_closing_leaves_nothing() -> None:
    """
    Neither a descriptor nor a mapping stays.
    """
    descriptors = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    mappings = _mapped_rings()
    ring = Ring("notices", create_ring_map(mmap.PAGESIZE), _LAYOUT)
    assert mappings < _mapped_rings()

    ring.close()

    assert descriptors == sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208
    assert mappings == _mapped_rings()
