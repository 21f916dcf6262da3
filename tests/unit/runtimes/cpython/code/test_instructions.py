"""Finds the place in its code of a frame that runs its thread's own copy of the instructions."""

import pytest

from gilscope.runtimes.cpython.code.instructions import offset_of
from support.gil.python_in_memory import PythonInMemory

_SIZE = 16


def _with_copies(version: str, count: int) -> tuple[PythonInMemory, int, list[int]]:
    """Return a code object with *count* copies, the second of which no thread has asked for."""
    python = PythonInMemory(version)
    code = python.code("work", instructions=_SIZE // 2)
    assert python.layout.code_thread_bytecode is not None
    copies = [0 if number == 1 else python.new(_SIZE + 64) for number in range(count)]
    table = python.new(8 + 8 * count)
    for number, value in enumerate([count, *copies]):
        python.put_int(table + 8 * number, value)
    python.put_int(code + python.layout.code_thread_bytecode, table)
    return python, code, copies


@pytest.mark.parametrize("version", ["3.14.9t", "3.15.1t"])
def test_instruction_of_a_copy(version: str) -> None:
    """
    Whichever copy it is in, and in front of it in a frame that has not begun.
    """
    python, code, copies = _with_copies(version, 4)

    for start in (code + python.layout.code_bytecode, copies[2], copies[3]):
        offsets = [
            offset_of(python.runtime, code, _SIZE, start + at - code & 0xFFFFFFFF)
            for at in (-4, -2, 0, 6, _SIZE - 2, _SIZE)
        ]
        assert [None, -2, 0, 6, _SIZE - 2, None] == offsets


@pytest.mark.parametrize("count", [0, 1 << 17])
def test_what_cannot_be_a_list_of_copies(count: int) -> None:
    """
    Memory that was freed and reused is not followed.
    """
    python, code, copies = _with_copies("3.14.9t", 4)
    table = int.from_bytes(
        python.read(code + (python.layout.code_thread_bytecode or 0), 8), "little"
    )
    python.put_int(table, count)

    assert offset_of(python.runtime, code, _SIZE, copies[2] - code & 0xFFFFFFFF) is None
