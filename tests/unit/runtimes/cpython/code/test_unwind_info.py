"""Tells the probes where frames are: what every version's layout becomes."""

import os
import subprocess
from pathlib import Path

import pytest

from gilscope.runtimes.cpython.code import unwind_info as frame_walk_module
from gilscope.runtimes.cpython.code.unwind_info import frame_walk
from gilscope.values import Record
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

every_version = pytest.mark.parametrize("version", LAYOUTS)

_LARGEST_FRAME = 128
"""MAX_FRAME_SIZE of the probes, which copy less than that."""


def _walk(version: str) -> tuple[PythonInMemory, Record]:
    python = PythonInMemory(version)
    return python, frame_walk(os.getpid(), python.runtime)


@every_version
def test_all_that_is_read_of_a_frame_is_copied(version: str) -> None:
    """
    The copy ends behind the last member that the probes look at, and they have room for it.
    """
    _, walk = _walk(version)
    ends = [
        walk["frame_previous"] + 8,
        walk["frame_code"] + 8,
        walk["frame_instruction"] + (8 if walk["instruction_is_pointer"] else 4),
        walk["frame_owner"] + 1,
        walk["frame_root"] + 1,
    ]

    assert max(ends) == walk["frame_size"] < _LARGEST_FRAME


@every_version
def test_members_lie_where_the_probes_can_take_them_from(version: str) -> None:
    """
    The probes take pointers at multiples of eight, and 32 bits at multiples of four.
    """
    _, walk = _walk(version)

    assert 0 == walk["frame_previous"] % 8 == walk["frame_code"] % 8
    assert 0 == walk["frame_instruction"] % (8 if walk["instruction_is_pointer"] else 4)


@every_version
def test_pointers_of_a_code_object_fit(version: str) -> None:
    """
    What tells code objects apart are three or four pointers in a row: file, names, line table.
    """
    python, walk = _walk(version)
    first, size = walk["code_pointers"], walk["code_pointers_size"]

    assert python.layout.code_file == first
    # The plain name is the second; what is shown is the qualified one where there is one.
    assert python.layout.code_name == first + size - 16
    assert python.layout.code_line_table == first + size - 8
    assert size in {24, 32}


@every_version
def test_first_frame_of_a_thread_is_marked(version: str) -> None:
    """
    Each mark of the layout is a bit, and nothing else is one.
    """
    python, walk = _walk(version)
    marks = [bit for bit in range(32) if walk["frame_root_marks"] >> bit & 1]

    assert sorted(python.layout.frame_root_marks) == marks


@pytest.mark.parametrize(
    ("version", "path"),
    [("3.10.13", (24, 0, 0)), ("3.11.7", (56, 1, 8)), ("3.12.1", (56, 1, 0))],
)
def test_way_to_the_innermost_frame(version: str, path: tuple[int, int, int]) -> None:
    """
    In 3.11 and 3.12 it leads over another structure, which may have the frame at its beginning.
    """
    _, walk = _walk(version)

    assert path == (walk["tstate_frame"], walk["has_cframe"], walk["cframe_frame"])


def test_interpreters_are_at_their_address_in_the_process() -> None:
    """
    The probes begin at an address of the running process, not at an offset.
    """
    python, walk = _walk("3.11.7")

    assert python.runtime.address + python.layout.interpreters_head == walk["interpreters"]


def test_process_in_the_agents_own_pid_namespace() -> None:
    """
    Nothing has to be translated where both know the threads by the same ids.
    """
    _, walk = _walk("3.11.7")

    assert (0, 0) == (walk["namespace_device"], walk["namespace_inode"])


def test_process_in_another_pid_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The kernel is asked for the ids of the process' own namespace.
    """
    # Any other namespace will do, and making one would take privileges.
    monkeypatch.setattr(frame_walk_module, "_OWN_NAMESPACE", Path("/proc/self/ns/net"))
    _, walk = _walk("3.11.7")
    its_own = Path("/proc/self/ns/pid").stat()

    assert (its_own.st_dev, its_own.st_ino) == (walk["namespace_device"], walk["namespace_inode"])


def test_process_that_has_gone() -> None:
    """
    Its namespace cannot be asked for any more.
    """
    with subprocess.Popen(["true"]) as process:
        process.wait()

        with pytest.raises(OSError, match=f"/proc/{process.pid}/ns/pid"):
            frame_walk(process.pid, PythonInMemory().runtime)
