"""Reads the whole Python stack of a thread of PyPy, from outside and without stopping it."""

import contextlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.process.remote_read import Memory, TornRead, read_bytes, read_pointer
from gilscope.runtimes.pypy.code_objects import CodeObjects
from gilscope.runtimes.pypy.jit_code import JitCode
from gilscope.runtimes.pypy.layout import STACK_OFFSETS, THREAD_CONTEXT, VIRTUAL_FORCED, Place
from gilscope.runtimes.pypy.nodes import NO_INSTRUCTION, NodeKind, walk
from gilscope.runtimes.pypy.nodes import Place as NodePlace
from gilscope.runtimes.pypy.threads import PyPyThread, PyPyThreads

__all__ = ["UNREAD_FRAME", "StackNames", "StackReader", "find_stack_offset", "frame_addresses"]

UNREAD_FRAME: Final = Frame("PyPy frame", "", 0)
"""In place of one whose code cannot be told."""
_NO_PYTHON: Final = Stack((), StackState.NO_PYTHON)
_TYPE_SIZE: Final = 4
_MOST_COMPARED: Final = 64

_Noted = tuple[NodePlace, int]
"""A node, and the instruction of its frame."""


class StackNames:
    """Names of code of one process. One thread may use it."""

    def __init__(self, memory: Memory, place: Place) -> None:
        self._code = CodeObjects(memory, place)
        self._jit = JitCode(memory, place)
        self._jitted: dict[int, tuple[int, ...]] = {}

    def frames(self, noted: Iterable[_Noted]) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first: code of the JIT has several in one."""
        found: list[Frame] = []
        entered = None
        for (kind, value), instruction in noted:
            if kind is NodeKind.GC:
                continue
            if kind is NodeKind.JITTED:
                # Of a thread that runs, what it has called last may not be code of the JIT's.
                numbers = [number for number, _ in groupby(self._numbers(value))]
                found += map(self._function, numbers)
                entered = numbers[-1] if numbers else None
                continue
            # The function whose loop was entered has a node of its own.
            if value != entered:
                found.append(self._at_line(value, instruction))
            entered = None
        return tuple(found)

    def _function(self, number: int) -> Frame:
        return self._code.frame(number) or UNREAD_FRAME

    def _at_line(self, number: int, instruction: int) -> Frame:
        frame = self._function(number)
        if instruction == NO_INSTRUCTION or frame is UNREAD_FRAME:
            return frame
        return self._code.at_line(number, instruction) or frame

    def _numbers(self, address: int) -> tuple[int, ...]:
        if address not in self._jitted:
            try:
                numbers = self._jit.numbers_at(address)
            except (TornRead, OSError):
                return ()
            if not numbers:
                return ()
            # Of loops of PyPy's own, such as that of regular expressions, there is no function.
            self._jitted[address] = tuple(number for number in numbers if number)
        return self._jitted[address]


class StackReader:
    """Reads the stacks of threads of one process. One thread may use it."""

    def __init__(self, memory: Memory, place: Place, threads: PyPyThreads, most: int) -> None:
        """Read *most* nodes of a stack at the most."""
        self._memory = memory
        self._place = place
        self._threads = threads
        self._most = most
        self._names = StackNames(memory, place)
        self._offset: int | None = None

    def stack(self, thread: PyPyThread) -> tuple[Stack, int]:
        """Return the stack of *thread*, and a number that is the same for the same nodes.

        Raises TornRead or OSError.
        """
        if self._offset is None:
            self._offset = find_stack_offset(self._memory, self._place, self._threads.all())
        if self._offset is None:
            return UNKNOWN_STACK, 0
        nodes = list(walk(self._memory, thread.address + self._offset, self._most + 1))
        noted = self._with_instructions(thread, nodes[: self._most])
        frames = self._names.frames(noted)
        if not frames:
            return _NO_PYTHON, 0
        state = StackState.CUT if len(nodes) > self._most else StackState.WHOLE
        return Stack(frames, state), hash(tuple(noted))

    def _with_instructions(self, thread: PyPyThread, nodes: list[NodePlace]) -> list[_Noted]:
        frames = _Frames(self._memory, self._place)
        with contextlib.suppress(TornRead, OSError):
            frames.begin(thread)
        return [
            (node, frames.instruction_of(node.value))
            if node.kind is NodeKind.CODE
            else (node, NO_INSTRUCTION)
            for node in nodes
        ]


class _Frames:
    """The chain of interpreted frames of a thread, as far as it agrees with its nodes."""

    def __init__(self, memory: Memory, place: Place) -> None:
        self._memory = memory
        self._facts = place.facts
        self._frame = 0

    def begin(self, thread: PyPyThread) -> None:
        context = read_pointer(self._memory, thread.address + THREAD_CONTEXT)
        if context:
            reference = read_pointer(self._memory, context + self._facts["context.frame"])
            self._frame = self._frame_at(reference)

    def instruction_of(self, number: int) -> int:
        """Return the instruction of the frame that is believed to be of code *number*."""
        frame, facts, memory = self._frame, self._facts, self._memory
        if not frame:
            return NO_INSTRUCTION
        self._frame = 0
        try:
            code = read_pointer(memory, frame + facts["frame.code"])
            known = read_bytes(memory, code + facts["code.number"], 8)
            instruction = read_bytes(memory, frame + facts["frame.instruction"], 4)
            caller = read_pointer(memory, frame + facts["frame.caller"])
            if int.from_bytes(known, "little") != number:
                return NO_INSTRUCTION
            self._frame = self._frame_at(caller)
        except (TornRead, OSError):
            return NO_INSTRUCTION
        return int.from_bytes(instruction, "little")

    def addresses(self, most: int) -> Iterator[int]:
        """Yield *most* frames from here on at the most, innermost first; raises as `read_bytes`."""
        caller = self._facts["frame.caller"]
        for _ in range(most):
            if not self._frame:
                return
            yield self._frame
            self._frame = self._frame_at(read_pointer(self._memory, self._frame + caller))

    def _frame_at(self, address: int) -> int:
        facts, memory = self._facts, self._memory
        if address and self._type(address) == facts["type.virtual"]:
            address = read_pointer(memory, address + VIRTUAL_FORCED)
        frames = (facts["type.frame"], facts["type.other_frame"])
        return address if address and self._type(address) in frames else 0

    def _type(self, address: int) -> int:
        return int.from_bytes(read_bytes(self._memory, address, _TYPE_SIZE), "little")


def frame_addresses(memory: Memory, place: Place, thread: PyPyThread, most: int) -> Iterator[int]:
    """Yield the interpreted frames of *thread*, innermost first, *most* at the most.

    They end where one cannot be read, or is none: a thread may run meanwhile.
    """
    frames = _Frames(memory, place)
    with contextlib.suppress(TornRead, OSError):
        frames.begin(thread)
        yield from frames.addresses(most)


def find_stack_offset(memory: Memory, place: Place, threads: Iterable[PyPyThread]) -> int | None:
    """Return where a thread's structure has its stack of nodes; None: no thread has shown it.

    Its nodes are those of the frames of the same thread, by the numbers of their code: since PyPy 8
    another list looks like it.
    """
    for thread in threads:
        for offset in STACK_OFFSETS:
            try:
                nodes = list(walk(memory, thread.address + offset, _MOST_COMPARED))
                frames = _Frames(memory, place)
                frames.begin(thread)
            except (TornRead, OSError):
                continue
            code = [node.value for node in nodes if node.kind is NodeKind.CODE]
            if code and all(frames.instruction_of(each) != NO_INSTRUCTION for each in code):
                return offset
    return None
