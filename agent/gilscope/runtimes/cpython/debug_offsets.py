"""Reads `_Py_DebugOffsets`, the table with which CPython 3.13+ describes its own structures."""

import struct
from collections.abc import Mapping, Sequence

from gilscope.errors import GilCodeNotFound, UnsupportedPython
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64

__all__ = ["COOKIE", "WORDS_NEEDED", "read_members", "structure_sizes"]

COOKIE = int(struct.unpack("<Q", b"xdebugpy")[0])
WORDS_NEEDED = 96
"""Enough 64-bit words for every position below."""

_LARGEST_STRUCTURE = 1 << 24

# Positions of 64-bit words in the table, from Include/internal/pycore_debug_offsets.h (3.13:
# pycore_runtime.h). Their order is frozen within a minor version and only there: 3.14 inserted
# threads_main, 3.15 three members of the thread state. Micro releases change the values.
_MINORS = ((3, 13), (3, 14), (3, 15))
_SIZES = {
    "runtime": (3, 3, 3),
    "interpreter": (6, 6, 6),
    "tstate": (19, 22, 22),
    "frame": (28, 31, 39),
    "code": (34, 39, 47),
    "object": (44, 50, 58),
    "bytes": (64, 74, 86),
    "str": (67, 77, 89),
    "gc": (71, 81, 94),
}
_MEMBERS = (
    # name, structure, bytes wide and aligned, position in each minor
    ("interpreters_head", "runtime", 8, (5, 5, 5)),
    ("interpreter_id", "interpreter", 8, (7, 7, 7)),
    ("interpreter_next", "interpreter", 8, (8, 8, 8)),
    ("threads_head", "interpreter", 8, (9, 9, 9)),
    ("gil_pointer", "interpreter", 8, (14, 15, 15)),
    ("gc", "interpreter", 8, (10, 11, 11)),
    ("imported_modules", "interpreter", 8, (11, 12, 12)),
    ("own_gil", "interpreter", 8, (15, 16, 16)),
    ("own_gil_locked", "interpreter", 4, (17, 18, 18)),
    ("own_gil_holder", "interpreter", 8, (18, 19, 19)),
    ("tstate_next", "tstate", 8, (21, 24, 24)),
    ("tstate_interpreter", "tstate", 8, (22, 25, 25)),
    ("tstate_frame", "tstate", 8, (23, 26, 26)),
    ("thread_id", "tstate", 8, (24, 27, 30)),
    ("native_thread_id", "tstate", 8, (25, 28, 31)),
    ("frame_previous", "frame", 8, (29, 32, 40)),
    ("frame_code", "frame", 8, (30, 33, 41)),
    ("frame_instruction", "frame", 8, (31, 34, 42)),
    ("frame_owner", "frame", 1, (33, 36, 44)),
    ("code_file", "code", 8, (35, 40, 48)),
    ("code_name", "code", 8, (37, 42, 50)),
    ("code_line_table", "code", 8, (38, 43, 51)),
    ("code_first_line", "code", 4, (39, 44, 52)),
    ("code_bytecode", "code", 2, (43, 48, 56)),
    ("object_type", "object", 8, (45, 51, 59)),
    ("bytes_length", "bytes", 8, (65, 75, 87)),
    ("bytes_content", "bytes", 1, (66, 76, 88)),
    ("str_state", "str", 4, (68, 78, 90)),
    ("str_length", "str", 8, (69, 79, 91)),
    ("str_ascii", "str", 8, (70, 80, 92)),
    ("gc_collecting", "gc", 4, (72, 82, 95)),
)
_FREE_THREADED = 2
# In v3.14: GH-123926 ("gh-115999: Implement thread-local bytecode and enable specialization for
# `BINARY_OP`"), threads of a free-threaded build run copies of their own.
_THREAD_BYTECODE = ("code_thread_bytecode", "code", 8, (0, 49, 57))


def read_members(minor: tuple[int, int], words: Sequence[int]) -> Mapping[str, int]:
    """Return the offset in bytes of every member that gilscope follows.

    ``own_gil`` is the interpreter's own GIL, ``str_ascii`` where the characters of an ASCII string
    begin, ``code_name`` the qualified name, ``code_bytecode`` where the instructions that are
    executed begin; ``code_thread_bytecode``, where there is that, has other threads' copies of
    them. Raises UnsupportedPython for a version whose table is
    not known, and GilCodeNotFound when the words cannot be the offsets of such structures.
    """
    version = f"{minor[0]}.{minor[1]}"
    if minor not in _MINORS:
        raise UnsupportedPython(f"the debug offsets of CPython {version} are not known")
    column = _MINORS.index(minor)
    offsets: dict[str, int] = {}
    places: set[tuple[str, int]] = set()
    is_free_threaded = bool(words[_FREE_THREADED])
    has_copies = is_free_threaded and _THREAD_BYTECODE[-1][column]
    members = (*_MEMBERS, _THREAD_BYTECODE) if has_copies else _MEMBERS
    for name, structure, width, positions in members:
        size, offset = words[_SIZES[structure][column]], words[positions[column]]
        fits = offset + width <= size <= _LARGEST_STRUCTURE and offset % width == 0
        if not fits or (structure, offset) in places:
            raise _implausible(version, f"{name} at {offset} of {size} bytes")
        places.add((structure, offset))
        offsets[name] = offset
    _check_gil(version, offsets, own_gil=offsets["own_gil"] + (8 if is_free_threaded else 0))
    return offsets


def structure_sizes(minor: tuple[int, int], words: Sequence[int]) -> tuple[int, int]:
    """Return how many bytes the runtime and an interpreter have; *words* are as `read_members`'."""
    column = _MINORS.index(minor)
    return words[_SIZES["runtime"][column]], words[_SIZES["interpreter"][column]]


def _check_gil(version: str, offsets: Mapping[str, int], own_gil: int) -> None:
    # A free-threaded build says first whether the lock is used: see `GilStruct.enabled`.
    found = (offsets["own_gil_holder"] - own_gil, offsets["own_gil_locked"] - own_gil)
    struct = GLIBC_X86_64
    if found != (struct.last_holder - struct.begin, struct.locked - struct.begin):
        raise _implausible(version, f"last_holder and locked at {found} of a GIL")


def _implausible(version: str, found: str) -> GilCodeNotFound:
    return GilCodeNotFound(f"implausible debug offsets for CPython {version}: {found}")
