"""What the kernel says of a thread."""

import os
import threading
from pathlib import Path

import pytest

from gilscope.process.threads.activity import (
    ThreadActivity,
    parse_call,
    parse_schedule,
    parse_stat,
    read_activity,
    read_descriptor,
)


@pytest.mark.parametrize("name", ["worker", "a) R 1 (b", "(", "", "two\nlines", "S (S) S"])
def test_name_and_state(name: str) -> None:
    """
    A name may hold anything, and what looks like the fields behind it as well.
    """
    assert (name, "D") == parse_stat(f"42 ({name}) D 1 42 42 0 -1 4194304 0\n")


@pytest.mark.parametrize("text", ["", "42", "42 (name)", "42 name) S"])
def test_what_is_no_stat(text: str) -> None:
    """
    It is refused.
    """
    with pytest.raises(ValueError, match="no stat of a thread"):
        parse_stat(text)


def test_a_call() -> None:
    """
    Its number and six arguments; stack and instruction are left out.
    """
    text = "202 0x7f00 0x189 0x0 0x7ffd 0x0 0xffffffff 0x7ffde0 0x7f11\n"

    assert (202, (0x7F00, 0x189, 0, 0x7FFD, 0, 0xFFFFFFFF)) == parse_call(text)


@pytest.mark.parametrize("text", ["running\n", "-1 0x7ffd 0x7f00\n", "", "0\n"])
def test_no_call(text: str) -> None:
    """
    A thread that runs, one that sleeps in a page fault, and one of which nothing is known.
    """
    assert parse_call(text) is None


def test_schedule() -> None:
    """
    Time with a processor and time without, and how often; a kernel may not count that.
    """
    assert (100, 20, 3) == parse_schedule("100 20 3\n")
    assert parse_schedule("") is None


def _thread(folder: Path, **files: str) -> ThreadActivity:
    place = folder / "7" / "task" / "8"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    return read_activity(7, 8, proc=folder)


def test_a_thread_is_read(tmp_path: Path) -> None:
    """
    All of it, from its folder.
    """
    found = _thread(
        tmp_path, stat="8 (io) S 1", syscall="0 0x5 0x1 0x2 0x0 0x0 0x0 0x1 0x2", schedstat="9 8 7"
    )

    assert ThreadActivity("io", "S", (0, (5, 1, 2, 0, 0, 0)), (9, 8, 7)) == found
    assert found.is_in_call


def test_kernels_that_tell_less(tmp_path: Path) -> None:
    """
    Without the two files that are options of the kernel, name and state are left.
    """
    assert ThreadActivity("io", "R", None, None) == _thread(tmp_path, stat="8 (io) R 1")


def test_a_thread_that_has_gone(tmp_path: Path) -> None:
    """
    It is no thread of which little is known.
    """
    with pytest.raises(FileNotFoundError):
        read_activity(7, 8, proc=tmp_path)


def test_what_a_descriptor_leads_to() -> None:
    """
    Of this very process; None where there is none.
    """
    reading, writing = os.pipe()
    try:
        assert str(read_descriptor(os.getpid(), reading)).startswith("pipe:[")
    finally:
        os.close(reading)
        os.close(writing)
    assert read_descriptor(os.getpid(), reading) is None


def test_this_thread_runs() -> None:
    """
    As the kernel of this machine writes it.
    """
    found = read_activity(os.getpid(), threading.get_native_id())

    assert "R" == found.state
    assert not found.is_in_call
