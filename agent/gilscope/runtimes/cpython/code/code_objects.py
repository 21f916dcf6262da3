"""Turns code addresses into names and lines, and knows a code object from its successor."""

import struct
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import field

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.process.remote_read import TornRead, read_bytes, read_int, to_pointer
from gilscope.runtimes.cpython.code.instructions import offset_of
from gilscope.runtimes.cpython.code.line_table import line_at
from gilscope.runtimes.cpython.code.strings import read_str
from gilscope.runtimes.cpython.layout import Layout
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.values import dataclass

__all__ = ["CodeReader", "code_pointers", "is_code"]


_POINTER = 8
_POINTERS_SIZE = 4 * _POINTER
_CONTENT_SIZE = 16
"""Of a line table: so much memory every bytes object has."""
_NOT_HASHED = (1 << 32) - 1
_HALF, _WHOLE = (1 << 32) - 1, (1 << 64) - 1
_MULTIPLIER = 0x9E3779B97F4A7C15


def code_pointers(layout: Layout) -> tuple[int, int]:
    """Return offset and size, in a code object, of its pointers from file name to line table."""
    return layout.code_file, layout.code_line_table + _POINTER - layout.code_file


def is_code(runtime: Runtime, code: int, identity: int) -> bool:
    """Return whether the code object at *code* is the one that the probes know by *identity*."""
    memory, layout = runtime.memory, runtime.layout
    offset, size = code_pointers(layout)
    try:
        pointers = read_bytes(memory, code + offset, size)
        # From the file name on: plain name, since 3.11 qualified name, line table.
        _, name, *_, line_table = struct.unpack(f"<{size // _POINTER}Q", pointers)
        content = read_bytes(memory, line_table + layout.line_table_content, _CONTENT_SIZE)
        name_hash = read_int(memory, name + layout.str_hash, 8) & _HALF
    except (TornRead, OSError):
        return False
    mixed = 0
    for (word,) in struct.iter_unpack("<Q", pointers.ljust(_POINTERS_SIZE, b"\0") + content):
        mixed = _mixed(mixed, word)
    # Somebody may have asked for the hash only after the probe had been there.
    return any(identity == _mixed(mixed, known) & _HALF for known in (name_hash, _NOT_HASHED))


def _mixed(value: int, added: int) -> int:
    value = (value ^ added) * _MULTIPLIER & _WHOLE
    return value ^ value >> 32


_MOST_CODES = 20_000
_MOST_BYTES = 32 << 20
"""That are kept of one process: its names and tables may be as long as it likes."""
_LONGEST_KEPT_TABLE = 1 << 16
"""Longer ones, of which there are hardly any, are read again for each new line."""
_OBJECT_BYTES = 512
"""What an entry takes besides its texts; a little more than was measured."""
_LONGEST_READ_TABLE = 1 << 20
"""In which a line is searched for."""
_LONGEST_TABLE = 1 << 22
_LONGEST_BYTECODE = 1 << 24
_UNIT = 2


@dataclass(frozen=True, slots=True)
class _Head:
    """What tells a code object from another one that gets its memory."""

    name: int
    file: int
    first_line: int
    line_table: int
    bytecode: int
    """Its length in bytes, or the address of the bytes object."""


@dataclass(frozen=True, slots=True)
class _Code:
    head: _Head
    function: str
    file: str
    line_table: bytes | None
    """None: too long to be kept."""
    bytecode_size: int
    frames: dict[int, Frame | None] = field(default_factory=dict)
    """By instruction; None for one that is not in this code."""

    @property
    def kept_bytes(self) -> int:
        """What it takes to keep it, at the most."""
        # Texts take up to four bytes a character.
        texts = 4 * (len(self.function) + len(self.file))
        return texts + len(self.line_table or b"") + _OBJECT_BYTES * (1 + len(self.frames))


class CodeReader:
    """The code objects of one process that frames have told of.

    Keeps the last *most* used, in *most_bytes* at the most.
    """

    def __init__(
        self, runtime: Runtime, *, most: int = _MOST_CODES, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._runtime = runtime
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._codes: OrderedDict[int, _Code] = OrderedDict()
        self._unknown = 0

    @property
    def unknown(self) -> int:
        """How many times `UNKNOWN_FRAME` was the answer."""
        return self._unknown

    def frame(self, code: int, instruction: int) -> Frame:
        """Return the frame that runs the code object at address *code*, with its line.

        *instruction* is 32 bits of what the frame holds: `f_lasti` up to 3.10, later its pointer to
        an instruction less *code*. The line is None in a frame that has not begun, and at an
        instruction that belongs to none. It is `UNKNOWN_FRAME` if this is no code object or the
        instruction is not in it, and if the process ended before it could be read.
        """
        (frame,) = self.frames([(code, instruction)])
        return frame

    def frames(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...]:
        """Return the frame of each code and instruction, as `frame` does, for less."""
        files: dict[int, str] = {}
        return tuple(self._frame(code, instruction, files) for code, instruction in places)

    def current_frames(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...]:
        """Return what `frames` does, of the code objects that are there now.

        Of one that has another's memory since it was read, nothing is told that was of the other.
        """
        places = tuple(places)
        for address, _ in places:
            known = self._codes.get(address)
            if known is not None and not self._is_still(address, known):
                self.forget(address)
        return self.frames(places)

    def _is_still(self, address: int, known: "_Code") -> bool:
        try:
            return self._read_head(address) == known.head
        except (TornRead, OSError):
            return False

    def whole_stack(self, places: Iterable[tuple[int, int]]) -> None:  # noqa: ARG002
        """Return None: each place is one frame."""
        return

    def is_same(self, code: int, identity: int) -> bool:
        """Return whether the code object at *code* is the one that the probes met."""
        return is_code(self._runtime, code, identity)

    def forget(self, code: int) -> None:
        """Read *code* again when it is asked for: there is another code object now."""
        known = self._codes.pop(code, None)
        if known is not None:
            self._bytes -= known.kept_bytes

    @property
    def kept_bytes(self) -> int:
        """What is kept takes at the most."""
        return self._bytes

    def _frame(self, address: int, instruction: int, files: dict[int, str]) -> Frame:
        code = self._code(address, files)
        if code is None:
            frame = None
        elif instruction in code.frames:
            frame = code.frames[instruction]
        else:
            frame = self._located(code, address, instruction)
            code.frames[instruction] = frame
            self._bytes += _OBJECT_BYTES
            self._evict()
        self._unknown += frame is None
        return frame or UNKNOWN_FRAME

    def _code(self, address: int, files: dict[int, str]) -> _Code | None:
        code = self._codes.get(address)
        if code is not None:
            self._codes.move_to_end(address)
            return code
        try:
            code = self._read(address, files)
        except (TornRead, OSError):
            return None
        self._codes[address] = code
        self._bytes += code.kept_bytes
        self._evict()
        return code

    def _evict(self) -> None:
        while self._codes and (len(self._codes) > self._most or self._bytes > self._most_bytes):
            self.forget(next(iter(self._codes)))

    def _read(self, address: int, files: dict[int, str]) -> _Code:
        head = self._read_head(address)
        if head.file not in files:
            files[head.file] = read_str(self._runtime, head.file)
        code = _Code(
            head=head,
            function=read_str(self._runtime, head.name),
            file=files[head.file],
            line_table=self._read_line_table(head.line_table, _LONGEST_KEPT_TABLE),
            bytecode_size=self._read_bytecode_size(head.bytecode),
        )
        # As long as the code object is there, so is all that it points to.
        if self._read_head(address) != head:
            raise TornRead(f"the code object at {address:#x} went while it was read")
        return code

    def _read_head(self, address: int) -> _Head:
        layout = self._runtime.layout
        ends_in_pointers = (layout.code_name, layout.code_line_table, layout.object_length)
        size = max(*ends_in_pointers, 0 if layout.instruction_is_pointer else layout.code_bytecode)
        content = read_bytes(self._runtime.memory, address, size + 8)
        if to_pointer(content, layout.object_type) != self._runtime.code_type:
            raise TornRead(f"no code object at {address:#x}")
        if layout.instruction_is_pointer:
            units = int(struct.unpack_from("<q", content, layout.object_length)[0])
            bytecode = units * _UNIT
        else:
            bytecode = to_pointer(content, layout.code_bytecode)
        return _Head(
            name=to_pointer(content, layout.code_name),
            file=to_pointer(content, layout.code_file),
            first_line=int(struct.unpack_from("<i", content, layout.code_first_line)[0]),
            line_table=to_pointer(content, layout.code_line_table),
            bytecode=bytecode,
        )

    def _read_line_table(self, address: int, longest: int) -> bytes | None:
        """Return the table at *address*, None where it is longer than *longest*."""
        size = self._length(address)
        if not 0 <= size <= _LONGEST_TABLE:
            raise TornRead(f"no line table at {address:#x}: {size} bytes")
        if size > longest:
            return None
        start = address + self._runtime.layout.bytes_content
        return read_bytes(self._runtime.memory, start, size)

    def _read_bytecode_size(self, bytecode: int) -> int:
        size = bytecode if self._runtime.layout.instruction_is_pointer else self._length(bytecode)
        if not 0 < size <= _LONGEST_BYTECODE:
            raise TornRead(f"a code object with {size} bytes of instructions")
        return size

    def _length(self, address: int) -> int:
        return read_int(self._runtime.memory, address + self._runtime.layout.object_length, 8)

    def _located(self, code: _Code, address: int, instruction: int) -> Frame | None:
        offset = offset_of(self._runtime, address, code.bytecode_size, instruction)
        if offset is None:
            return None
        form = self._runtime.layout.line_table_form
        table = code.line_table
        if table is None:
            table = self._long_table(code, address)
        try:
            line = None if table is None else line_at(form, table, code.head.first_line, offset)
        except ValueError:
            line = None  # programs may make code objects with any table they like
        return Frame(code.function, code.file, code.head.first_line, line)

    def _long_table(self, code: _Code, address: int) -> bytes | None:
        try:
            table = self._read_line_table(code.head.line_table, _LONGEST_READ_TABLE)
            return table if self._read_head(address) == code.head else None
        except (TornRead, OSError):
            return None
