"""Reading one process, until that is too much."""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from gilscope.process.memory import ProcessMemory
from gilscope.process.memory_reader import MemoryReader, ReadUnanswered
from gilscope.process.reads import ProcessReads

_TEXT = ctypes.create_string_buffer(b"answered")


class _Reader:
    """Does as a `MemoryReader` does, in no time."""

    def __init__(self) -> None:
        self.waited_s = 0.0
        self.hangs = False

    def read(self, _pid: int, read: Callable[[], Any], waited: Callable[[float], None]) -> Any:
        if self.hangs:
            raise ReadUnanswered(errno.ETIMEDOUT, "hangs")
        waited(self.waited_s)
        return read()


@pytest.fixture
def memory() -> Iterator[ProcessMemory]:
    """The memory of the test."""
    with ProcessMemory(os.getpid()) as opened:
        yield opened


def test_what_does_not_answer_once_is_not_asked_again(memory: ProcessMemory) -> None:
    """
    Nor by whoever reads on in a thread that was left to itself.
    """
    reader = _Reader()
    reads = ProcessReads(cast("MemoryReader", reader), 7, memory)
    address = ctypes.addressof(_TEXT)
    assert b"answered" == reads(lambda: memory.read(address, 8))
    assert not reads.stopped
    reader.hangs = True
    with pytest.raises(ReadUnanswered):
        reads(lambda: b"")
    reader.hangs = False

    assert "does not answer" in reads.stopped
    with pytest.raises(ReadUnanswered):
        reads(lambda: b"")
    with pytest.raises(ProcessLookupError):
        memory.read(address, 8)


def test_waiting_counts_as_work(memory: ProcessMemory) -> None:
    """
    Whoever else is traced waits as well; after so much of it the process is not followed.
    """
    reader = _Reader()
    reads = ProcessReads(cast("MemoryReader", reader), 7, memory)
    reader.waited_s = 1.9
    for _ in range(2):
        reads(lambda: None)
        assert not reads.stopped
    reads(lambda: None)

    assert "takes more of gilscope's time than 5 s at once and 5% in the long run" in reads.stopped
