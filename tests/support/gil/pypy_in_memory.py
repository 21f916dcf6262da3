"""A PyPy made of bytes: what the readers would find."""

import struct
from collections.abc import Sequence
from typing import cast

from gilscope.process.memory import ProcessMemory
from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.instance import PyPyInstance
from gilscope.runtimes.pypy.layout import (
    DESCRIPTOR_TID,
    STACK_OFFSETS,
    THREAD_CONTEXT,
    THREAD_IDENT,
    THREAD_NEXT,
    VIRTUAL_FORCED,
    Place,
)
from gilscope.runtimes.pypy.nodes import NodeKind
from gilscope.runtimes.pypy.sites.work_facts import SECTIONS_AT_REST
from support.gil.filled_memory import FilledMemory
from support.gil.handed_reads import HandedReads

__all__ = ["PyPyInMemory"]

_TYPES = {"code": 0x100, "virtual": 0x108, "codes": 0x110, "context": 0x118, "frame": 0x120}
_OTHER_FRAME = 0x128
_FIELDS = {
    "frame.caller": 16,
    "frame.code": 24,
    "frame.instruction": 32,
    "frame.token": 40,
    "context.frame": 40,
    "code.name": 16,
    "code.file": 48,
    "code.first_line": 56,
    "code.number": 64,
    "code.lines": 72,
}
_DATA, _BSS = 0x400, 0x200
_LIST_AT = 0x208
"""Where the list of code is in the data; what has the same type before it is something else."""
_LIST_OF_CODE = 64
"""Weak references that it has room for."""


class PyPyInMemory:
    """The process *pid*. Its memory is filled piece by piece."""

    def __init__(self, pid: int, *, stack_offset: int = STACK_OFFSETS[0], bias: int = 0) -> None:
        """Have the stacks of threads at *stack_offset*, and the file loaded *bias* higher."""
        self.memory = memory = FilledMemory()
        self._stack_offset = stack_offset
        self.lock, self.head = memory.new(8), memory.new(64)
        self.data, self.bss = memory.new(_DATA), memory.new(_BSS)
        self.sections, self._jit_current, self.mark = (memory.new(8) for _ in range(3))
        memory.put(self.sections, SECTIONS_AT_REST)
        self._codes = memory.new(16 + 8 * _LIST_OF_CODE)
        self._count = 0
        memory.put_int(self._codes + 8, _LIST_OF_CODE)
        memory.put_int(self.data + 0x100, _TYPES["codes"])
        memory.put_int(self.data + _LIST_AT, _TYPES["codes"])
        memory.put_int(self.data + _LIST_AT + 16, self._codes)
        memory.put_int(self.head + THREAD_NEXT, self.head)
        self._last = self.head
        self.facts = Facts(
            {
                "lock": self.lock - bias,
                "threads": self.head - bias,
                "data": self.data - bias,
                "data.size": _DATA,
                "bss": self.bss - bias,
                "bss.size": _BSS,
                "type.other_frame": _OTHER_FRAME,
                "sections": self.sections - bias,
                "jit.current": self._jit_current - bias,
                "jit.mark": self.mark - bias,
                **{f"type.{name}": number for name, number in _TYPES.items()},
                **_FIELDS,
            }
        )
        self.place = Place(self.facts, bias)
        read = cast("ProcessMemory", memory)
        self.handed = HandedReads()
        self.instance = PyPyInstance(pid, self.facts, bias, read, self.handed)

    def text(self, content: str | bytes) -> int:
        """Return the address of a new rpy_string."""
        raw = content.encode() if isinstance(content, str) else content
        address = self.memory.new(24 + len(raw))
        self.memory.put_int(address + 16, len(raw))
        self.memory.put(address + 24, raw)
        return address

    def code(
        self, number: int, name: str, file: str = "/srv/app.py", line: int = 1, lines: bytes = b""
    ) -> int:
        """Return the address of new code, which PyPy's list of all code has a reference to."""
        address = self.memory.new(128)
        for offset, value in (
            (0, _TYPES["code"]),
            (_FIELDS["code.name"], self.text(name)),
            (_FIELDS["code.file"], self.text(file)),
            (_FIELDS["code.first_line"], line),
            (_FIELDS["code.number"], number),
            (_FIELDS["code.lines"], self.text(lines)),
        ):
            self.memory.put_int(address + offset, value)
        reference = self.memory.new(16)
        self.memory.put_int(reference + 8, address)
        self.memory.put_int(self._codes + 16 + 8 * self._count, reference)
        self._count += 1
        return address

    def frame(
        self, code: int, caller: int = 0, instruction: int = 0, *, other: bool = False
    ) -> int:
        """Return the address of a new interpreted frame, of the second kind if *other*."""
        address = self.memory.new(64)
        self.memory.put_int(address, _OTHER_FRAME if other else _TYPES["frame"])
        self.memory.put_int(address + _FIELDS["frame.caller"], caller)
        self.memory.put_int(address + _FIELDS["frame.code"], code)
        self.memory.put_int(address + _FIELDS["frame.instruction"], instruction)
        return address

    def virtual(self, frame: int = 0) -> int:
        """Return a reference of the JIT's to *frame*, 0 where that is in registers."""
        address = self.memory.new(32)
        self.memory.put_int(address, _TYPES["virtual"])
        self.memory.put_int(address + VIRTUAL_FORCED, frame)
        return address

    def nodes(self, *nodes: tuple[NodeKind, int]) -> int:
        """Return the address of the first of new nodes, innermost first.

        Of the JIT's, the number is the address that the code continues at.
        """
        following = 0
        for kind, value in reversed(nodes):
            address = self.memory.new(24)
            said = self._return_address(value) if kind is NodeKind.JITTED else value
            self.memory.put(address, struct.pack("<QqQ", following, said, kind))
            following = address
        return following

    def _return_address(self, continues_at: int) -> int:
        """Return the place on a stack below which it stands where code continues."""
        below = self.memory.new(16)
        self.memory.put_int(below, continues_at)
        return below + 8

    def thread(self, tid: int, frame: int = 0, nodes: int = 0) -> int:
        """Return the pthread_self() of a new thread at the end of the list."""
        address, ident = self.memory.new(128), self.memory.new(1024)
        context = self.memory.new(64)
        for place, value in (
            (self._last + THREAD_NEXT, address),
            (address + THREAD_NEXT, self.head),
            (address + THREAD_IDENT, ident),
            (address + THREAD_CONTEXT, context),
            (address + self._stack_offset, nodes),
            (context + _FIELDS["context.frame"], frame),
        ):
            self.memory.put_int(place, value)
        self.memory.put_int(ident + DESCRIPTOR_TID, tid, 4)
        self._last = address
        return ident

    def works(self, sections: int, *about: int) -> None:
        """Have it be in so many sections, and the JIT about these, each within the one before."""
        self.memory.put(self.sections, struct.pack("<q", -1 << sections))
        current, items = self.memory.new(24), self.memory.new(16 + 8 * len(about))
        self.memory.put(items + 16, struct.pack(f"<{len(about)}q", *about))
        self.memory.put(current + 8, struct.pack("<2Q", len(about), items))
        self.memory.put_int(self._jit_current, current)

    def traced(self, frame: int) -> None:
        """Mark *frame* as one that is being traced, and has made a call."""
        self.memory.put_int(frame + _FIELDS["frame.token"], self.mark)

    def jit_piece(self, begin: int, size: int, numbers: Sequence[int]) -> None:
        """Have one piece of code made by the JIT, with this table of what is inlined where."""
        head, node, table = self.bss + 0x40, self.memory.new(96), self.memory.new(8 * len(numbers))
        self.memory.put(table, struct.pack(f"<{len(numbers)}q", *numbers))
        self.memory.put(node, struct.pack("<2Q", begin, node + 24))
        self.memory.put(node + 24, struct.pack("<IIQ", size, len(numbers), table))
        self.memory.put_int(head + 16, node)
