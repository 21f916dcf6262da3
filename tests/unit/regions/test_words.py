"""The words by which processes know that what they read is true."""

import mmap
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gilscope.regions.words import Words


@contextmanager
def _read_by_others(words: Words) -> Iterator[mmap.mmap]:
    with mmap.mmap(words.fileno(), words.size, mmap.MAP_SHARED, mmap.PROT_READ) as seen:
        yield seen


def _agent(words: Words, seen: mmap.mmap) -> int:
    (number,) = struct.unpack_from("=I", seen, words.agent_at)
    return int(number)


def _state(words: Words, seen: mmap.mmap, number: int) -> int:
    (state,) = struct.unpack_from("=Q", seen, words.place(number))
    return int(state)


def test_each_process_has_a_word_of_its_own() -> None:
    """
    What ends for one goes on for the others, and the next to have its place has another number.
    """
    with Words(3) as words, _read_by_others(words) as seen:
        first, last = words.begin(0), words.begin(2)
        assert [first, 0, last] == [_state(words, seen, number) for number in range(3)]

        words.end(0)

        assert [0, 0, last] == [_state(words, seen, number) for number in range(3)]
        assert words.begin(0) not in (0, first, last)


def test_all_words_end_with_the_agent() -> None:
    """
    Who has them mapped still sees that.
    """
    words = Words(2)
    with _read_by_others(words) as seen:
        words.begin(1)
        assert words.agent == _agent(words, seen)

        words.close()

        assert (0, 0) == (_agent(words, seen), _state(words, seen, 1))


def test_nobody_else_can_write_them() -> None:
    """
    Neither through a mapping nor to the file, nor through the link of /proc, nor can it be cut.
    """
    with Words(1) as words:
        with pytest.raises(PermissionError):
            mmap.mmap(words.fileno(), words.size)
        with pytest.raises(PermissionError):
            os.write(words.fileno(), b"x")
        with pytest.raises(PermissionError):
            os.ftruncate(words.fileno(), 0)
        again = os.open(f"/proc/self/fd/{words.fileno()}", os.O_RDWR)
        try:
            with pytest.raises(PermissionError):
                mmap.mmap(again, words.size)
        finally:
            os.close(again)


def test_the_kernel_marks_the_death_of_the_agent() -> None:
    """
    One that is killed has no time to say anything.
    """
    ours, theirs = os.pipe()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        words = Words(1)
        os.dup2(words.fileno(), 100)
        os.write(theirs, struct.pack("=III", words.size, words.agent_at, words.agent))
        os.read(readable, 1)
        os._exit(1)
    size, at, agent = struct.unpack("=III", os.read(ours, 12))
    file = os.open(f"/proc/{child}/fd/100", os.O_RDONLY)
    with mmap.mmap(file, size, mmap.MAP_SHARED, mmap.PROT_READ) as seen:
        before = struct.unpack_from("=I", seen, at)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        after = struct.unpack_from("=I", seen, at)
    for descriptor in (file, ours, theirs, readable, writable):
        os.close(descriptor)

    assert ((agent,), True) == (before, after != before)
