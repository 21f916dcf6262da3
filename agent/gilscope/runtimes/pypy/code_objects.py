"""Reads names of code out of a PyPy's memory, by the numbers that its stacks have."""

import struct
from dataclasses import replace

from gilscope.model.stack import Frame
from gilscope.process.remote_read import Memory, TornRead, read_bytes, read_pointer
from gilscope.runtimes.cpython.code.line_table import LineTableForm, line_at
from gilscope.runtimes.pypy import line_table
from gilscope.runtimes.pypy.layout import STRING_CONTENT, STRING_LENGTH, Place

__all__ = ["CodeObjects", "read_bytes_of", "read_string"]

_ARRAY_LENGTH, _ARRAY_ITEMS = 8, 16
"""In a GcArray."""
_WEAKREF_OBJECT = 8
_MOST_CODE = 1 << 20
_SHORTEST_LIST = 4
_LONGEST_NAME = 4096
_LONGEST_TABLE = 1 << 20
_MOST_LINES = 50_000
_TYPE_SIZE = 4
_LARGEST_LINE = 1 << 31
_LONGEST_PAUSE = 255


def read_string(memory: Memory, address: int) -> str:
    """Return the text of the rpy_string at *address*; raises TornRead for what cannot be one."""
    return read_bytes_of(memory, address, _LONGEST_NAME).decode("utf-8", "replace")


def read_bytes_of(memory: Memory, address: int, most: int = _LONGEST_TABLE) -> bytes:
    """Return what the rpy_string at *address* holds, *most* bytes; raises TornRead likewise."""
    length = int.from_bytes(read_bytes(memory, address + STRING_LENGTH, 8), "little")
    if length > most:
        raise TornRead(f"a string of {length} bytes at {address:#x}")
    return read_bytes(memory, address + STRING_CONTENT, length)


class CodeObjects:
    """All code of one process, by number. Numbers are never used again."""

    def __init__(self, memory: Memory, place: Place) -> None:
        self._memory = memory
        self._place = place
        self._facts = place.facts
        self._frames: dict[int, Frame] = {}
        self._addresses: dict[int, int] = {}
        self._lines: dict[tuple[int, int], Frame] = {}
        self._read: set[int] = set()
        """Addresses in the list that have been read."""
        self._list = 0
        self._searched: tuple[int, ...] = ()
        """The list when it was last read through."""
        self._pause = self._left = 0
        """How often it is not, while it is the same: altogether, and from now on."""

    def frame(self, number: int) -> Frame | None:
        """Return the function of the code *number*; None where it cannot be read any more."""
        if number not in self._frames:
            self._read_new()
        return self._frames.get(number)

    def at_line(self, number: int, instruction: int) -> Frame | None:
        """Return the function of the code *number* with the line of an instruction of it.

        None where the line cannot be told.
        """
        key = (number, instruction)
        if key not in self._lines:
            try:
                known, frame = self.frame_of(self._addresses[number])
                if known != number:
                    return None
                line = self._line(self._addresses[number], frame.first_line, instruction)
            except (TornRead, ValueError, KeyError, OSError):
                return None
            if len(self._lines) > _MOST_LINES:
                self._lines.clear()
            self._lines[key] = replace(frame, line=line)
        return self._lines[key]

    def _line(self, code: int, first_line: int, instruction: int) -> int | None:
        is_own = "code.line_table" in self._facts
        name = "code.line_table" if is_own else "code.lines"
        address = read_pointer(self._memory, code + self._facts[name])
        table = read_bytes_of(self._memory, address)
        if is_own:
            return line_table.line_at(table, first_line, instruction)
        return line_at(LineTableForm.INCREMENTS, table, first_line, instruction)

    def frame_of(self, code: int) -> tuple[int, Frame]:
        """Return the number and the function of the code object at *code*; raises TornRead."""
        memory, facts = self._memory, self._facts
        kind = int.from_bytes(read_bytes(memory, code, _TYPE_SIZE), "little")
        if kind != facts["type.code"]:
            raise TornRead(f"no code at {code:#x}")
        named = "code.qualified_name" if "code.qualified_name" in facts else "code.name"
        line = int.from_bytes(read_bytes(memory, code + facts["code.first_line"], 8), "little")
        if not 0 <= line < _LARGEST_LINE:
            raise TornRead(f"code at {code:#x} in line {line}")
        number = int.from_bytes(read_bytes(memory, code + facts["code.number"], 8), "little")
        return number, Frame(
            read_string(memory, read_pointer(memory, code + facts[named])),
            read_string(memory, read_pointer(memory, code + facts["code.file"])),
            line,
        )

    def _read_new(self) -> None:
        """Read what has been added to PyPy's own list of code, which holds it weakly."""
        try:
            references = self._references()
        except (TornRead, OSError):
            return
        if not self._is_due(references):
            return
        for reference in references:
            if not reference or reference in self._read:
                continue
            try:
                code = read_pointer(self._memory, reference + _WEAKREF_OBJECT)
                if not code:
                    continue
                number, frame = self.frame_of(code)
            except (TornRead, OSError):
                continue  # it has gone, or is just being moved
            self._frames[number] = frame
            self._addresses[number] = code
            self._read.add(reference)

    def _is_due(self, references: tuple[int, ...]) -> bool:
        """Return whether to read through the list: what was being moved may be there now."""
        if references != self._searched:
            self._searched, self._pause, self._left = references, 0, 0
            return True
        if self._left:
            self._left -= 1
            return False
        self._pause = self._left = min(2 * self._pause + 1, _LONGEST_PAUSE)
        return True

    def _references(self) -> tuple[int, ...]:
        self._list = self._list or self._find_list()
        if not self._list:
            return ()
        array = read_pointer(self._memory, self._list + 16)
        length = int.from_bytes(read_bytes(self._memory, array + _ARRAY_LENGTH, 8), "little")
        if length > _MOST_CODE:
            raise TornRead(f"a list of {length} code objects")
        items = read_bytes(self._memory, array + _ARRAY_ITEMS, 8 * length)
        return struct.unpack(f"<{length}Q", items)

    def _find_list(self) -> int:
        """Return the address of the list: the one object of its type that was made with PyPy."""
        start, size = self._place.address("data"), self._facts["data.size"]
        data = read_bytes(self._memory, start, size)
        begins = struct.pack("<I", self._facts["type.codes"])
        at = data.find(begins)
        while at >= 0:
            if at % 8 == 0 and self._is_list(data, at):
                return start + at
            at = data.find(begins, at + 1)
        return 0

    def _is_list(self, data: bytes, at: int) -> bool:
        if at + 24 > len(data):
            return False
        (array,) = struct.unpack_from("<Q", data, at + 16)
        try:
            length = int.from_bytes(read_bytes(self._memory, array + _ARRAY_LENGTH, 8), "little")
        except (TornRead, OverflowError, OSError):
            return False
        # It grows by doubling.
        return _SHORTEST_LIST <= length <= _MOST_CODE and not length & (length - 1)
