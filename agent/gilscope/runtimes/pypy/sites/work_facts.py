"""Finds where PyPy notes that it collects garbage, and that it compiles, in its file.

Both it does for its own logs (PYPYLOG), and always, whether there is one or not. Each section of
such work shifts one word to the left, and its end shifts it back (rpython's debug_print.c); the JIT
has a list of what it is about as well, in a `Profiler` (jitprof.py).
"""

import re
import struct
from collections import Counter
from typing import Final

from gilscope.elf.image import ElfImage, Section
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.sites.type_table import TypeTable

__all__ = ["SECTIONS_AT_REST", "work_facts"]

SECTIONS_AT_REST: Final = b"\xff" * 8
"""What the word of sections is outside of all of them."""
_TESTED: Final = re.compile(rb"\xf6\x05(.{4})\x01", re.DOTALL)
"""``testb $1, word(%rip)``: whether to log, which is asked in hundreds of places."""
_FEWEST_TESTS: Final = 32
_FASTER: Final = 8
"""Than any other search is one for bytes that are known: 45 MB take 10 ms."""
_PREBUILT: Final = 3 << 32
"""Flags in the header of an object that is in the file: `_GC_FLAGS` of incminimark.py."""
_FRAME: Final = "pypy.interpreter.pyframe.PyFrame"
_PROFILER: Final = "rpython.jit.metainterp.jitprof.Profiler"
_MARK: Final = "JITFRAME_DUMMY"
"""Of the one object which is the token of a frame that is being traced, and has made a call."""


def work_facts(image: ElfImage, types: TypeTable, data: Section) -> dict[str, int]:
    """Return where sections and what the JIT is about are noted in *data*.

    Raises GilCodeNotFound where it is not certain, or ElfError. Names are those of
    `gilscope.runtimes.pypy.facts`.
    """
    content = bytes(image.section_bytes(data))
    mark, profiler = (types.ids.get(name) for name in (_MARK, _PROFILER))
    if mark is None or profiler is None:
        raise GilCodeNotFound("this PyPy has no JIT, or notes of it of another form")
    return {
        "sections": _sections(image, data, content),
        "jit.current": _only(content, profiler, "notes of the JIT")
        + data.vaddr
        + types.offset(_PROFILER, "inst_current"),
        "jit.mark": _only(content, mark, "marks of the JIT") + data.vaddr,
        "frame.token": types.offset(_FRAME, "vable_token"),
    }


def _sections(image: ElfImage, data: Section, content: bytes) -> int:
    """Return the address of the one word that begins as it does at rest, and is tested so often."""
    text = image.section(".text")
    if text is None:
        raise GilCodeNotFound("this PyPy has no section .text")
    image.budget.search((text.size + len(content)) // _FASTER)
    code = image.section_bytes(text)
    tests: Counter[int] = Counter()
    for found in _TESTED.finditer(code):
        (distance,) = struct.unpack("<i", found[1])
        at = text.vaddr + found.end() + distance - data.vaddr
        if at >= 0 and at % 8 == 0 and content[at : at + 8] == SECTIONS_AT_REST:
            tests[at] += 1
    often = [at for at, count in tests.items() if count >= _FEWEST_TESTS]
    if len(often) != 1:
        raise GilCodeNotFound(f"this PyPy has {len(often)} words that sections are noted in")
    return data.vaddr + often[0]


def _only(content: bytes, number: int, what: str) -> int:
    """Return where in *content* the one object of the type *number* is that the file has."""
    header = re.escape(struct.pack("<Q", _PREBUILT | number))
    found = [each.start() for each in re.finditer(header, content) if each.start() % 8 == 0]
    if len(found) != 1:
        raise GilCodeNotFound(f"this PyPy has {len(found)} {what}, not one")
    return found[0]
