"""A Python process made of bytes: what the readers would find, laid out as one version does it."""

import struct
from collections.abc import Sequence
from typing import cast

from gilscope.process.memory import ProcessMemory
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.instance import CPythonInstance
from gilscope.runtimes.cpython.layout import Layout, layout_for
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.runtimes.cpython.sites.static_lock import StaticLock
from support.gil.filled_memory import FilledMemory
from support.gil.handed_reads import HandedReads
from support.gil.recorded_offsets import FREE_THREADED_OFFSETS, RECORDED_OFFSETS

__all__ = ["LAYOUTS", "PythonInMemory", "PythonStructures"]

_PID = 4711
_STRUCTURE = 8192
# As if the compiler had put the variables where the members of the structure are in 3.7.
_STATIC_LOCK = StaticLock(
    cond=0x1420,
    switch_cond=0x1478,
    interval=0x1400,
    last_holder=0x1408,
    locked=0x1410,
    switch_number=0x1418,
    interpreters=0x1000,
    collecting=0x1200,
    generations=0x1300,
)


def _layout(version: str) -> Layout:
    major, minor = map(int, version.split(".")[:2])
    lock = _STATIC_LOCK if (major, minor) == (3, 6) else None
    offsets = {**RECORDED_OFFSETS, **FREE_THREADED_OFFSETS}.get(version)
    return layout_for(Interpreter((major, minor), version, 0x1000, 0x2000, offsets, lock))


LAYOUTS = {
    version: _layout(version)
    for version in (
        "3.6.15",
        "3.7.16",
        "3.8.18",
        "3.9.18",
        "3.10.13",
        "3.11.7",
        "3.12.1",
        *RECORDED_OFFSETS,
        *FREE_THREADED_OFFSETS,
    )
}


class PythonStructures(FilledMemory):
    """The structures of a CPython with this layout."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.code_type = self.new(64)
        self.runtime = Runtime(self, self.layout, self.new(_STRUCTURE), self.code_type)

    def text(self, text: str) -> int:
        """Return the address of a new str, as narrow as CPython would make it."""
        widest = max(map(ord, text), default=0)
        kind = 1 if widest < 1 << 8 else 2 if widest < 1 << 16 else 4
        is_ascii = widest < 1 << 7
        units = struct.pack(f"<{len(text)}{' BH I'[kind]}", *map(ord, text))
        start = self.layout.str_ascii if is_ascii else self.layout.str_wide
        address = self.new(start + len(units))
        self.put_int(address + self.layout.str_length, len(text))
        # kind in three bits, compact and ascii in one each; interned, before them, and the highest
        # bit are somebody else's business.
        state = 0x80000001 | (kind | 1 << 3 | is_ascii << 4) << self.layout.str_kind
        self.put_int(address + self.layout.str_state, state, 4)
        self.put(address + start, units)
        return address

    def bytes_object(self, content: bytes) -> int:
        """Return the address of a new bytes object."""
        address = self.new(self.layout.bytes_content + len(content) + 1)
        self.put_int(address + self.layout.object_length, len(content))
        self.put(address + self.layout.bytes_content, content)
        return address

    def code(
        self,
        name: str,
        file: str = "/app/jobs.py",
        line: int = 1,
        *,
        line_table: bytes = b"",
        instructions: int = 8,
    ) -> int:
        """Return the address of a new code object with that number of instructions."""
        address = self.new(256)
        self.put_int(address + self.layout.object_type, self.code_type)
        self.put_int(address + self.layout.code_line_table, self.bytes_object(line_table))
        if self.layout.instruction_is_pointer:
            self.put_int(address + self.layout.object_length, instructions)
        else:
            bytecode = self.bytes_object(bytes(2 * instructions))
            self.put_int(address + self.layout.code_bytecode, bytecode)
        self.put_int(address + self.layout.code_name, self.text(name))
        self.put_int(address + self.layout.code_file, self.text(file))
        self.put_int(address + self.layout.code_first_line, line, 4)
        return address

    def frame(self, code: int, previous: int = 0, owner: int = 0) -> int:
        """Return the address of a new frame that was called from *previous*."""
        address = self.new(256)
        self.put_int(address + self.layout.frame_code, code)
        self.put_int(address + self.layout.frame_previous, previous)
        marks = self.layout.frame_root_marks
        unmarked = next(value for value in range(256) if value not in marks)
        self.put_int(address + self.layout.frame_root, unmarked, 1)
        if self.layout.frame_owner is not None:
            self.put_int(address + self.layout.frame_owner, owner, 1)
        return address

    def first_frame(self, code: int) -> int:
        """Return the address of a new frame that is marked as the first one of a thread."""
        marks = self.layout.frame_root_marks
        if self.layout.frame_root == self.layout.frame_owner:
            return self.frame(code, self.frame(0, owner=marks[0]))
        address = self.frame(code)
        self.put_int(address + self.layout.frame_root, marks[0], 1)
        return address

    def stack(self, first: int, *codes: int) -> int:
        """Return the innermost of new frames that run these codes, outermost first."""
        frame = self.first_frame(first)
        for code in codes:
            frame = self.frame(code, frame)
        return frame

    def interpreter(self, number: int, following: int = 0, gil: int | None = None) -> int:
        """Return a new interpreter before *following*, now the head of the list."""
        address = self.new(_STRUCTURE)
        if self.layout.interpreter_id is not None:
            self.put_int(address + self.layout.interpreter_id, number)
        self.put_int(address + self.layout.interpreter_next, following)
        if self.layout.gil_pointer is not None and gil is not None:
            self.put_int(address + self.layout.gil_pointer, gil and gil - self._before_interval)
        self.put_int(self.runtime.address + self.layout.interpreters_head, address)
        return address

    def modules(
        self, interpreter: int, made: Sequence[tuple[str, bool, bool]], *, has_hashes: bool = False
    ) -> None:
        """Let *interpreter* have imported modules: name, is it C code, does it need the GIL.

        Only a free-threaded build keeps that. The dict has room for twice as many, *has_hashes* of
        keys that are not all texts, and an entry in front that was taken out.
        """
        form = self.layout.modules
        assert form is not None
        entry = 24 if has_hashes else 16
        keys, index_bits = self.new(32 + (1 << 6) + entry * (2 * len(made) + 1)), 6
        self.put(keys + 9, bytes((index_bits, 0 if has_hashes else 1)))
        self.put_int(keys + 16, len(made))
        self.put_int(keys + 24, len(made) + 1)
        for number, (name, is_c, needs_gil) in enumerate(made, 1):
            module = self.new(128)
            other = 1 - form.value_if_needed
            value = form.value_if_needed if needs_gil else other
            self.put_int(module + form.definition, int(is_c), form.width)
            self.put_int(module + form.gil, value, form.width)
            at = keys + 32 + (1 << index_bits) + entry * number + entry - 16
            self.put_int(at, self.text(name))
            self.put_int(at + 8, module)
        modules = self.new(64)
        self.put_int(modules + form.dict_keys, keys)
        self.put_int(interpreter + form.in_interpreter, modules)

    def gil(self, *, locked: int = 1, interval_us: int = 5000, enabled: int = 1) -> int:
        """Return a GIL from its interval on: the runtime's one where there is only that.

        Only a free-threaded build says whether it is *enabled*, before that.
        """
        begin, enabled_at = self.layout.gil_struct.begin, self.layout.gil_struct.enabled
        if self.layout.gil_in_runtime is not None:
            address = (
                self.runtime.address + self.layout.gil_in_runtime + self.layout.gil_cond + begin
            )
        else:
            address = self.new(256) + self._before_interval
        if enabled_at is not None:
            self.put_int(address - begin + enabled_at, enabled, 4)
        self.put_int(address, interval_us)
        self.put_int(address + 16, locked, 4)
        return address

    @property
    def _before_interval(self) -> int:
        return 8 if self.layout.gil_struct.enabled is not None else 0

    def thread(
        self,
        interpreter: int,
        following: int = 0,
        *,
        frame: int = 0,
        thread_id: int = 0,
        native_thread_id: int = 0,
    ) -> int:
        """Return a new thread before *following*, now the head of the interpreter's list."""
        address = self.new(512)
        self.put_int(address + self.layout.tstate_next, following)
        self.put_int(address + self.layout.tstate_interpreter, interpreter)
        self.put_int(address + self.layout.thread_id, thread_id)
        if self.layout.native_thread_id is not None:
            self.put_int(address + self.layout.native_thread_id, native_thread_id)
        *path, last = self.layout.frame_path
        holder = address
        for offset in path:
            link = self.new(64)
            self.put_int(holder + offset, link)
            holder = link
        self.put_int(holder + last, frame)
        self.put_int(interpreter + self.layout.threads_head, address)
        return address


class PythonInMemory(PythonStructures):
    """A process that runs the CPython *version*."""

    def __init__(self, version: str = "3.11.7") -> None:
        super().__init__(LAYOUTS[version])
        memory = cast("ProcessMemory", self)
        self.handed = HandedReads()
        self.instance = CPythonInstance(_PID, self.runtime, memory, self.handed)
