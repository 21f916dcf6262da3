"""A ring buffer in a file that is laid out as the kernel does it."""

import mmap
import os
import struct
from collections.abc import Iterator

import pytest

from gilscope.bpf.info import MapStatistics
from gilscope.bpf.map import RecordLayout
from gilscope.bpf.ringbuf import Ring

_LAYOUT = RecordLayout(12, (("number", 0, "Q", 0), ("what", 8, "I", 0)))
_SIZE = mmap.PAGESIZE
_STEP = 24
"""A header and 12 bytes, padded to 8."""
_BUSY = 1 << 31
_DISCARDED = 1 << 30


class RingFile:
    """The kernel's side of it."""

    def __init__(self, begin: int) -> None:
        self._fd = os.memfd_create("ring")
        os.ftruncate(self._fd, 2 * mmap.PAGESIZE + 2 * _SIZE)
        self.produced = begin
        self._put(0, struct.pack("=Q", begin))
        self._tell()

    @property
    def consumed(self) -> int:
        """The position up to which everything has been taken."""
        number: int = struct.unpack("=Q", os.pread(self._fd, 8, 0))[0]
        return number

    def open(self) -> Ring:
        """Return the reader."""
        return Ring("notices", os.dup(self._fd), _LAYOUT)

    def add(self, number: int, flags: int = 0) -> int:
        """Write one record and return its position."""
        position = self.produced
        record = struct.pack("=IIQI4x", 12 | flags, 0, number, 5)
        for index, byte in enumerate(record):
            self._put_data((position + index) % _SIZE, byte)
        self.produced += _STEP
        self._tell()
        return position

    def finish(self, position: int, flags: int = 0, length: int = 12) -> None:
        """Set the flags and the length of the record at *position*."""
        for index, byte in enumerate(struct.pack("=I", length | flags)):
            self._put_data((position + index) % _SIZE, byte)

    def close(self) -> None:
        """Give up the file."""
        os.close(self._fd)

    def _tell(self) -> None:
        self._put(mmap.PAGESIZE, struct.pack("=Q", self.produced))

    def _put_data(self, offset: int, byte: int) -> None:
        # The second mapping of the same memory begins where the first one ends.
        for begin in (2 * mmap.PAGESIZE, 2 * mmap.PAGESIZE + _SIZE):
            self._put(begin + offset, bytes([byte]))

    def _put(self, offset: int, content: bytes) -> None:
        os.pwrite(self._fd, content, offset)


@pytest.fixture(autouse=True)
def _size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is not asked."""
    monkeypatch.setattr(
        "gilscope.bpf.ringbuf.map_statistics", lambda _: MapStatistics(27, _SIZE, None)
    )


@pytest.fixture(params=[0, 8, _SIZE - 8, (1 << 40) - 16], ids=lambda begin: f"begin-{begin}")
def file(request: pytest.FixtureRequest) -> Iterator[RingFile]:
    """A ring that has been in use: its first record lies anywhere, perhaps over the end."""
    made = RingFile(request.param)
    yield made
    made.close()


@pytest.fixture
def ring(file: RingFile) -> Iterator[Ring]:
    """Its reader."""
    made = file.open()
    yield made
    made.close()


def _numbers(ring: Ring) -> list[int]:
    return [record["number"] for record in ring.drain()]


def test_records_are_taken_in_order(file: RingFile, ring: Ring) -> None:
    """
    All fields come out, and the room of all of them is given back.
    """
    file.add(1 << 63)
    file.add(2)

    assert [{"number": 1 << 63, "what": 5}, {"number": 2, "what": 5}] == list(ring.drain())
    assert file.produced == file.consumed
    assert [] == list(ring.drain())


def test_busy_record_ends_it_until_next_time(file: RingFile, ring: Ring) -> None:
    """
    Nothing overtakes a record that is still being written.
    """
    file.add(1)
    busy = file.add(2, _BUSY)
    file.add(3)

    assert [1] == _numbers(ring)
    assert busy == file.consumed
    assert [] == _numbers(ring)
    file.finish(busy)
    assert [2, 3] == _numbers(ring)


def test_busy_record_that_is_discarded(file: RingFile, ring: Ring) -> None:
    """
    It is skipped when its writer has given it up, not before.
    """
    busy = file.add(1, _BUSY | _DISCARDED)
    file.add(2)

    assert [] == _numbers(ring)
    file.finish(busy, _DISCARDED)
    assert [2] == _numbers(ring)
    assert file.produced == file.consumed


def test_room_is_given_back_at_each_record(file: RingFile, ring: Ring) -> None:
    """
    Who stops in the middle has taken what came out, and the rest is still there.
    """
    for number in range(3):
        file.add(number)
    begin = file.consumed
    taken = ring.drain()

    assert 0 == next(taken)["number"]
    assert begin + _STEP == file.consumed
    # Two readers that take turns share it out; nothing comes twice.
    assert 1 == next(ring.drain())["number"]
    assert 2 == next(taken)["number"]
    assert [] == list(taken)


def test_many_laps(file: RingFile, ring: Ring) -> None:
    """
    Every place in the ring is used, and no record is lost or doubled.
    """
    taken = []
    for lap in range(20):
        for number in range(100):
            file.add(lap * 100 + number)
        taken += _numbers(ring)

    assert list(range(2000)) == taken


def test_record_of_another_size_is_refused(file: RingFile, ring: Ring) -> None:
    """
    What does not have the layout is an error, once; the reader goes on behind it.
    """
    odd = file.add(1)
    file.finish(odd, length=28)
    file.produced += 16
    file.add(2)

    with pytest.raises(struct.error):
        list(ring.drain())
    assert [2] == _numbers(ring)


def test_descriptor_is_the_maps(file: RingFile) -> None:
    """
    It is what poll is given, and closing gives it back with the memory.
    """
    made = file.open()
    fd = made.fileno()
    assert os.fstat(fd)
    made.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_map_that_cannot_be_mapped() -> None:
    """
    The error is raised, and the descriptor is still the caller's.
    """
    reading, writing = os.pipe()
    with pytest.raises(OSError, match="Errno"):
        Ring("notices", reading, _LAYOUT)
    os.close(reading)
    os.close(writing)
