"""Finds where PyPy keeps its threads, and what its frames and code look like, in its file."""

import re
import struct
from collections.abc import Iterator
from typing import Final

from gilscope.elf.image import ElfError, ElfImage, Section
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.facts import packed_version
from gilscope.runtimes.pypy.sites.type_table import TypeTable, read_type_table
from gilscope.runtimes.pypy.sites.work_facts import work_facts

__all__ = ["frame_facts", "version_facts"]

_RELATIVE: Final = 8  # R_X86_64_RELATIVE
_RELOCATION: Final = struct.Struct("<QQq")
_RELOCATIONS_A_STEP: Final = 4
# struct pypy_threadlocal_s: prev, next; its head has -1 for `ready`.
_PREVIOUS, _NEXT, _HEAD_MARK = 16, 24, -1

_FRAME: Final = "pypy.interpreter.pyframe.PyFrame"
_CODE: Final = "pypy.interpreter.pycode.PyCode"
_ANY_CODE: Final = "pypy.interpreter.eval.Code"
_CONTEXT: Final = "pypy.interpreter.executioncontext.ExecutionContext"
_VIRTUAL: Final = "JitVirtualRef"
_CODES: Final = "rpython.rlib.rvmprof.rvmprof.WeakCodeObjectList"
_SECOND_FRAME: Final = "StdObjSpaceFrame"
_CODE_BEGIN: Final = 32
"""Where the fields of a PyCode begin: a header, three words of what it inherits."""

_VERSION: Final = re.compile(
    rb"\0(\d\.\d{1,2}\.\d{1,3}) \((\d{1,2}\.\d{1,2}\.\d{1,3})[^\0]{0,60}\)"
)


def version_facts(image: ElfImage) -> dict[str, int]:
    """Return the versions of the language and of PyPy, nothing where they cannot be told."""
    found = set()
    for name in (".rodata", ".data", ".data.rel.ro"):
        section = image.section(name)
        if section is not None:
            image.budget.search(section.size)
            found |= set(_VERSION.findall(bytes(image.section_bytes(section))))
    if len(found) != 1:
        return {}
    python, pypy = (packed_version(text.decode("ascii")) for text in found.pop())
    return {"python": python, "pypy": pypy}


def frame_facts(image: ElfImage) -> tuple[dict[str, int], str]:
    """Return the facts of threads, frames, code and of PyPy's own work, and what lacks in words.

    Raises GilCodeNotFound where there is none, or ElfError. Names are those of
    `gilscope.runtimes.pypy.facts`.
    """
    data, bss = _section(image, ".data"), _section(image, ".bss")
    image.budget.search(2 * data.size)
    types = read_type_table(bytes(image.section_bytes(data)))
    facts = {
        "threads": _list_of_threads(image),
        "data": data.vaddr,
        "data.size": data.size,
        "bss": bss.vaddr,
        "bss.size": bss.size,
        **_fields(types),
    }
    # Last, because a file may be too large to look for these as well.
    try:
        return {**facts, **work_facts(image, types, data)}, ""
    except (GilCodeNotFound, ElfError) as reason:
        return facts, f"garbage collection and compilation are not told: {reason}"


def _section(image: ElfImage, name: str) -> Section:
    section = image.section(name)
    if section is None:
        raise GilCodeNotFound(f"this PyPy has no section {name}")
    return section


def _fields(types: TypeTable) -> dict[str, int]:
    frame = types.ids.get(_FRAME)
    wanted = {"code": _CODE, "virtual": _VIRTUAL, "codes": _CODES, "context": _CONTEXT}
    numbers = {name: types.ids.get(each) for name, each in wanted.items()}
    if frame is None or None in numbers.values():
        raise GilCodeNotFound("this PyPy lacks one of the types that stacks are made of")
    second = (number for name, number in types.ids.items() if name.endswith(_SECOND_FRAME))
    facts = {f"type.{name}": number for name, number in numbers.items() if number is not None}
    facts["type.frame"] = frame
    facts["type.other_frame"] = next(second, frame)
    facts["frame.caller"] = types.offset(_FRAME, "inst_f_backref")
    facts["frame.code"] = types.offset(_FRAME, "inst_pycode")
    facts["frame.instruction"] = types.offset(_FRAME, "inst_last_instr")
    facts["context.frame"] = types.offset(_CONTEXT, "inst_topframeref")
    facts["code.name"] = types.offset(_ANY_CODE, "inst_co_name")
    of_code = types.fields[_CODE]
    for name, field in (
        ("file", "inst_co_filename"),
        ("first_line", "inst_co_firstlineno"),
        ("number", "inst__vmprof_unique_id"),
        ("qualified_name", "inst_co_qualname"),
        ("lines", "inst_co_lnotab"),
        ("line_table", "inst_co_linetable"),
    ):
        if field in of_code:
            facts[f"code.{name}"] = _CODE_BEGIN + 8 * of_code.index(field)
    if not {"code.file", "code.first_line", "code.number"} <= facts.keys():
        raise GilCodeNotFound("this PyPy lacks one of the fields that code is told by")
    return facts


def _list_of_threads(image: ElfImage) -> int:
    """Return the address of the head of the list of threads, which is empty in the file."""
    relocated = dict(_relocations(image))
    heads = [
        target
        for place, target in relocated.items()
        if target == place - _PREVIOUS
        and relocated.get(target + _NEXT) == target
        and struct.unpack("<i", image.read(target, 4))[0] == _HEAD_MARK
    ]
    if len(heads) != 1:
        raise GilCodeNotFound(f"this PyPy has {len(heads)} lists of threads, not one")
    return heads[0]


def _relocations(image: ElfImage) -> Iterator[tuple[int, int]]:
    """Yield the words of the file that hold an address when it is loaded, and that address."""
    for section in image.sections:
        if not section.name.startswith(".rela"):
            continue
        table = image.section_bytes(section)
        entries = len(table) // _RELOCATION.size
        image.budget.spend(entries // _RELOCATIONS_A_STEP)
        for place, kind, target in _RELOCATION.iter_unpack(table[: entries * _RELOCATION.size]):
            # Those alone that point near themselves: there are a million.
            if kind == _RELATIVE and 0 <= place - target <= _NEXT:
                yield place, target
