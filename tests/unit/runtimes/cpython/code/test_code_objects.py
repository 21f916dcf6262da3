"""Names code objects in memory that stays, goes, and becomes something else."""

import errno
import os
from dataclasses import dataclass

import pytest

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.line_table import LineTableForm
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

every_version = pytest.mark.parametrize("version", LAYOUTS)

# Four instructions at the first line, then two at the one after the next, then four at the last.
_TABLES = {
    LineTableForm.INCREMENTS: bytes([8, 2, 4, 1]),
    LineTableForm.RANGES: bytes([8, 0, 4, 2, 8, 1]),
    LineTableForm.LOCATIONS: bytes([0x83, 0, 0x80 | 12 << 3 | 1, 0, 0, 0x80 | 11 << 3 | 3, 0, 0]),
}
_INSTRUCTIONS = 10
_WORK = Frame("Pool.work", "/srv/app/pool.py", 41)


@dataclass(slots=True)
class _Process:
    """A process with one code object of ten instructions, and a reader of it."""

    python: PythonInMemory
    reader: CodeReader
    code: int

    def new_code(self, frame: Frame) -> int:
        """Return the address of another code object."""
        return self.python.code(
            frame.function,
            frame.file,
            frame.first_line,
            line_table=_TABLES[self.python.layout.line_table_form],
            instructions=_INSTRUCTIONS,
        )

    def instruction(self, number: int) -> int:
        """Return what a frame at that instruction of its code says, as the probe delivers it."""
        layout = self.python.layout
        if layout.instruction_is_pointer:
            value = layout.code_bytecode + 2 * number
        elif layout.line_table_form is LineTableForm.RANGES:
            value = number
        else:
            value = -1 if number == -1 else 2 * number
        return value & 0xFFFFFFFF

    def line(self, number: int) -> int | None:
        """Return the line that the reader gives for that instruction."""
        return self.reader.frame(self.code, self.instruction(number)).line

    def overwrite(self, frame: Frame) -> None:
        """Put another code object where the first one was."""
        self.python.put(self.code, self.python.read(self.new_code(frame), 256))


def _process(version: str = "3.11.7", *, most: int = 10) -> _Process:
    python = PythonInMemory(version)
    process = _Process(python, CodeReader(python.runtime, most=most), 0)
    process.code = process.new_code(_WORK)
    return process


def _end(python: PythonInMemory) -> None:
    def read(address: int, size: int) -> bytes:
        del address, size
        raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))

    python.read = read  # type: ignore[method-assign]


@every_version
def test_name_and_line(version: str) -> None:
    """
    A frame has its function's name, file and first line, and the line of its instruction.
    """
    process = _process(version)

    assert Frame("Pool.work", "/srv/app/pool.py", 41, 43) == process.reader.frame(
        process.code, process.instruction(5)
    )
    assert [41, 41, 43, 43, 44, 44] == [process.line(number) for number in (0, 3, 4, 5, 6, 9)]
    assert 0 == process.reader.unknown


@every_version
def test_frame_that_has_not_begun(version: str) -> None:
    """
    A frame before its first instruction has a name and no line.
    """
    process = _process(version)

    assert _WORK == process.reader.frame(process.code, process.instruction(-1))
    assert 0 == process.reader.unknown


@every_version
@pytest.mark.parametrize("number", [_INSTRUCTIONS, 1 << 20, -2, -(1 << 20)])
def test_instruction_of_another_code_object(version: str, number: int) -> None:
    """
    Where code object and instruction do not belong together, neither is believed.
    """
    process = _process(version)
    frame = process.reader.frame(process.code, process.instruction(number))

    assert UNKNOWN_FRAME == frame
    assert 1 == process.reader.unknown
    assert 41 == process.line(0)


@every_version
def test_what_is_no_code_object(version: str) -> None:
    """
    Memory of another type, without a type, or that is not there gives the unknown frame.
    """
    process = _process(version)
    stranger = process.new_code(_WORK)
    process.python.put_int(
        stranger + process.python.layout.object_type, process.python.code_type + 16
    )
    addresses = [stranger, process.python.new(256), 0x7E00_0000_0000, 8]
    places = [(address, process.instruction(0)) for address in addresses]

    assert (UNKNOWN_FRAME,) * 4 == process.reader.frames(places)
    assert 4 == process.reader.unknown


@every_version
@pytest.mark.parametrize("length", [-1, 1 << 40])
def test_line_table_of_no_sane_size(version: str, length: int) -> None:
    """
    What cannot be a line table is not read, and the code object with it not believed.
    """
    process = _process(version)
    layout = process.python.layout
    table = process.python.read(process.code + layout.code_line_table, 8)
    process.python.put_int(int.from_bytes(table, "little") + layout.object_length, length)

    assert UNKNOWN_FRAME == process.reader.frame(process.code, process.instruction(0))


@every_version
def test_table_that_a_program_made_up(version: str) -> None:
    """
    A code object with a line table that cannot be decoded still has its name.
    """
    process = _process(version)
    code = process.python.code("made", "/srv/up.py", 3, line_table=b"\x01", instructions=4)

    assert Frame("made", "/srv/up.py", 3) == process.reader.frame(code, process.instruction(1))


@every_version
def test_code_object_is_read_once(version: str) -> None:
    """
    Any number of frames of one code object cost one reading of it.
    """
    process = _process(version)
    process.line(0)
    reads = process.python.reads
    for number in range(_INSTRUCTIONS):
        process.line(number)

    assert reads <= 11
    assert reads == process.python.reads


def test_file_name_is_read_once_for_frames_asked_together() -> None:
    """
    Functions of one file share the reading of its name.
    """
    process = _process()
    other = process.new_code(_WORK)
    file = process.python.layout.code_file
    process.python.put(other + file, process.python.read(process.code + file, 8))
    start = process.python.reads
    process.reader.frame(process.code, process.instruction(0))
    alone = process.python.reads - start
    again = CodeReader(process.python.runtime)
    start = process.python.reads
    places = [(code, process.instruction(0)) for code in (process.code, other)]
    frames = again.frames(places)

    assert 2 * alone - 2 == process.python.reads - start
    assert frames[0] == frames[1]


@every_version
def test_code_object_that_goes_while_it_is_read(version: str) -> None:
    """
    A name that was read while its memory changed hands is nobody's.
    """
    process = _process(version)
    whole = process.python.read
    other = whole(process.new_code(Frame("other", "/srv/app/other.py", 5)), 256)
    table_field = process.code + process.python.layout.code_line_table
    table = int.from_bytes(whole(table_field, 8), "little")

    def read(address: int, size: int) -> bytes:
        if address == table + process.python.layout.bytes_content:
            process.python.put(process.code, other)
        return whole(address, size)

    process.python.read = read  # type: ignore[method-assign]
    first = process.reader.frame(process.code, process.instruction(0))
    second = process.reader.frame(process.code, process.instruction(0))

    assert (UNKNOWN_FRAME, "other") == (first, second.function)


def test_process_that_has_ended() -> None:
    """
    Names that are known stay; others are unknown.
    """
    process = _process()
    other = process.new_code(Frame("other", "/srv/app/other.py", 5))
    process.line(0)
    _end(process.python)

    assert 43 == process.line(5)
    assert UNKNOWN_FRAME == process.reader.frame(other, process.instruction(0))


def test_memory_is_bounded() -> None:
    """
    Of more code objects than are kept those go that were not asked for the longest.
    """
    process = _process(most=2)
    second, third = (process.new_code(_WORK) for _ in range(2))
    for code in (process.code, second, process.code, third):
        process.reader.frame(code, process.instruction(0))
    reads = process.python.reads
    process.reader.frames((code, process.instruction(0)) for code in (process.code, third))

    assert reads == process.python.reads
    process.reader.frame(second, process.instruction(0))
    assert reads < process.python.reads


@pytest.mark.parametrize("text", ["größe", "待機", "𠮷野家", "<lambda>", ""])
def test_names_of_every_width(text: str) -> None:
    """
    Names and paths come as they are, whatever characters they are made of.
    """
    process = _process()
    code = process.new_code(Frame(text, f"/srv/{text}.py", 1))

    assert Frame(text, f"/srv/{text}.py", 1, 1) == process.reader.frame(
        code, process.instruction(0)
    )


@every_version
def test_kept_bytes_are_bounded(version: str) -> None:
    """
    However long the tables and names of a process are, what is kept of them is not.
    """
    python = PythonInMemory(version)
    reader = CodeReader(python.runtime, most_bytes=100_000)
    for number in range(40):
        code = python.code(f"f{number}", line_table=bytes(10_000))
        reader.frame(code, 0)

        assert reader.kept_bytes <= 100_000
    assert reader.kept_bytes > 50_000


@every_version
def test_a_long_table_is_not_kept(version: str) -> None:
    """
    Many code objects may share one: its lines are found all the same.
    """
    process = _process(version)
    table = _TABLES[process.python.layout.line_table_form]
    process.code = process.python.code(
        *("f", "/f.py", 41),
        line_table=table + bytes(70_000 - len(table)),
        instructions=_INSTRUCTIONS,
    )

    assert 43 == process.line(5)
    assert process.reader.kept_bytes < 5_000


@every_version
def test_what_is_forgotten_is_not_counted(version: str) -> None:
    """
    Else a program that goes on making code would use up what may be kept.
    """
    process = _process(version)
    for number in range(3):
        process.line(number)
    process.reader.forget(process.code)

    assert 0 == process.reader.kept_bytes
