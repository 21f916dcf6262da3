"""Reads the Python stack of a thread, and the names of the code that runs on it."""

import struct
from collections import deque
from collections.abc import Iterator

from gilscope.model.stack import Frame
from gilscope.process.remote_read import (
    LimitExceeded,
    TornRead,
    read_bytes,
    read_int,
    read_pointer,
    retried,
    to_pointer,
)
from gilscope.runtimes.cpython.code.frame_marks import (
    FIRST_OWNER_WITHOUT_CODE,
    OWNER_GENERATOR,
    REFERENCE_FLAGS,
)
from gilscope.runtimes.cpython.code.strings import read_str
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["innermost_places", "outermost_frames", "places", "read_code"]

_DEEPEST_STACK = 200_000


def outermost_frames(runtime: Runtime, tstate: int, count: int) -> list[Frame]:
    """Return the *count* frames that the thread entered first, outermost first; raises TornRead.

    The thread may run on meanwhile: a frame that it leaves can end the walk early, or lead it into
    the stack of a thread that reuses the memory. So the last frame has to be the first one of a
    thread, and a second walk has to arrive at the same.
    """
    return retried(lambda: _outermost(runtime, tstate, count))


def read_code(runtime: Runtime, code: int) -> Frame:
    """Return name, file and first line of the code object at *code*; raises TornRead."""
    head = _read_head(runtime, code)
    name, file, first_line = head
    frame = Frame(read_str(runtime, name), read_str(runtime, file), first_line)
    # As long as the code object is there, so are its names; it may have gone since the walk.
    if _read_head(runtime, code) != head:
        raise TornRead(f"the code object at {code:#x} went while it was read")
    return frame


def _read_head(runtime: Runtime, code: int) -> tuple[int, int, int]:
    memory, layout = runtime.memory, runtime.layout
    if read_pointer(memory, code + layout.object_type) != runtime.code_type:
        raise TornRead(f"no code object at {code:#x}")
    return (
        read_pointer(memory, code + layout.code_name),
        read_pointer(memory, code + layout.code_file),
        read_int(memory, code + layout.code_first_line, 4),
    )


def _outermost(runtime: Runtime, tstate: int, count: int) -> list[Frame]:
    root, _ = _walk_to_root(runtime, tstate, count)
    again, codes = _walk_to_root(runtime, tstate, count)
    if root != again:
        raise TornRead(f"a stack that begins at {root:#x} and then at {again:#x}")
    return _named(runtime, codes)


def _walk_to_root(runtime: Runtime, tstate: int, count: int) -> tuple[int, list[int]]:
    layout = runtime.layout
    codes: deque[int] = deque(maxlen=count)
    root, mark = 0, 0
    for address, frame in _frames(runtime, tstate):
        root, mark = address, frame[layout.frame_root]
        code = _code_of(runtime, frame)
        if code:
            codes.appendleft(code)
    if root and mark not in layout.frame_root_marks:
        raise TornRead(f"a stack that ends in the middle, at {root:#x}")
    return root, list(codes)


def _named(runtime: Runtime, codes: list[int]) -> list[Frame]:
    names = {code: read_code(runtime, code) for code in dict.fromkeys(codes)}
    return [names[code] for code in codes]


def places(runtime: Runtime, tstate: int) -> Iterator[tuple[int, int]]:
    """Yield code object and instruction of each frame, innermost first; raises TornRead.

    The instruction is what `CodeReader.frame` takes. Frames that run no Python code are left out.
    """
    layout = runtime.layout
    for _, frame in _frames(runtime, tstate):
        code = _code_of(runtime, frame)
        if code:
            (low_half,) = struct.unpack_from("<I", frame, layout.frame_instruction)
            base = code if layout.instruction_is_pointer else 0
            yield code, (low_half - base) & 0xFFFF_FFFF


def innermost_places(
    runtime: Runtime, tstate: int, most: int
) -> tuple[list[tuple[int, int]], bool]:
    """Return *most* of what `places` yields, and whether that is all; raises TornRead.

    The chain has to end where a thread begins, unless it is longer than that. That of a generator
    that has been left since its address was read ends in it.
    """
    layout = runtime.layout
    found: list[tuple[int, int]] = []
    mark, owner = None, 0
    for _, frame in _frames(runtime, tstate):
        mark = frame[layout.frame_root]
        owner = 0 if layout.frame_owner is None else frame[layout.frame_owner]
        code = _code_of(runtime, frame)
        if not code:
            continue
        if len(found) == most:
            return found, False
        (low_half,) = struct.unpack_from("<I", frame, layout.frame_instruction)
        base = code if layout.instruction_is_pointer else 0
        found.append((code, (low_half - base) & 0xFFFF_FFFF))
    if owner == OWNER_GENERATOR or (mark is not None and mark not in layout.frame_root_marks):
        raise TornRead("a stack that ends in the middle")
    return found, True


def _frames(runtime: Runtime, tstate: int) -> Iterator[tuple[int, bytes]]:
    layout = runtime.layout
    pointers_end = max(layout.frame_previous, layout.frame_code) + 8
    instruction_end = layout.frame_instruction + 4
    marks_end = max(layout.frame_owner or 0, layout.frame_root) + 1
    size = max(pointers_end, instruction_end, marks_end)
    address = tstate
    for offset in layout.frame_path:
        address = read_pointer(runtime.memory, address + offset)
        if not address:
            return
    seen: set[int] = set()
    while address:
        if address in seen:
            raise TornRead(f"a stack of {len(seen)} frames does not end at {address:#x}")
        if len(seen) == _DEEPEST_STACK:
            raise LimitExceeded(f"its memory tells of a stack of more than {len(seen)} frames")
        seen.add(address)
        frame = read_bytes(runtime.memory, address, size)
        yield address, frame
        address = to_pointer(frame, layout.frame_previous)


def _code_of(runtime: Runtime, frame: bytes) -> int:
    layout = runtime.layout
    if layout.frame_owner is not None and frame[layout.frame_owner] >= FIRST_OWNER_WITHOUT_CODE:
        return 0
    reference = frame[layout.frame_code : layout.frame_code + 8]
    code = int.from_bytes(reference, "little") & ~REFERENCE_FLAGS
    if not code:
        raise TornRead("a frame without code")
    return code
