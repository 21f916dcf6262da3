"""Reading one process, until that is too much."""

import ctypes
import errno
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from gilscope.process.memory import ProcessMemory
from gilscope.process.memory_reader import Answer, MemoryReader, Reading, ReadUnanswered
from gilscope.process.reads import DirectReads, ProcessReads, read_of_each

_TEXT = ctypes.create_string_buffer(b"answered")


class _Reader:
    """Does as a `MemoryReader` does, in no time."""

    def __init__(self) -> None:
        self.waited_s = 0.0
        self.hangs = False
        self.hanging: tuple[int, ...] = ()

    def read_each(self, readings: Sequence[Reading[Any]]) -> list[Answer[Any]]:
        return [self._answer(each) for each in readings]

    def _answer(self, reading: Reading[Any]) -> Answer[Any]:
        if self.hangs or reading.pid in self.hanging:
            return Answer(error=ReadUnanswered(errno.ETIMEDOUT, "hangs"))
        assert reading.waited is not None
        reading.waited(self.waited_s)
        try:
            return Answer(reading.read())
        except OSError as error:
            return Answer(error=error)


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


def test_who_asks_reads_itself_where_it_may_be_left_behind(memory: ProcessMemory) -> None:
    """
    Nobody else does it for it; what takes too long, or hangs, is read no more.
    """
    direct = ProcessReads(cast("MemoryReader", None), 7, memory).direct
    asking = threading.get_ident()
    assert asking == direct(threading.get_ident) == direct.direct(threading.get_ident)
    for wait_s in (2.5, 2.4):
        direct.waited(wait_s)
        assert not direct.stopped
    direct.waited(0.2)
    with pytest.raises(ReadUnanswered, match="takes more of gilscope's time"):
        direct(threading.get_ident)

    direct.give_up()

    with pytest.raises(ReadUnanswered, match="does not answer"):
        direct(threading.get_ident)


def test_of_many_only_the_one_that_hangs_is_given_up() -> None:
    """
    Each is answered in its place, those that are read directly as well.
    """
    reader = _Reader()
    reader.hanging = (8,)
    memories = [ProcessMemory(os.getpid()) for _ in range(3)]
    many = [
        ProcessReads(cast("MemoryReader", reader), pid, memory)
        for pid, memory in zip((7, 8, 9), memories, strict=True)
    ]
    asked = [*many[:2], DirectReads(), many[2], DirectReads()]
    answers = read_of_each(
        [(reads, lambda at=at: at if at < 4 else at // 0) for at, reads in enumerate(asked)]  # type: ignore[misc]
    )
    for memory in memories:
        memory.close()

    assert [0, 2, 3] == [answers[at].get() for at in (0, 2, 3)]
    for at, kind in ((1, ReadUnanswered), (4, ZeroDivisionError)):
        with pytest.raises(kind):
            answers[at].get()
    assert [False, True, False] == [bool(reads.stopped) for reads in many]
