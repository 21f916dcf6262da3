"""Where a PyPy's file says that threads, frames and code are."""

import struct
import zlib
from pathlib import Path

import pytest

from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.sites.frame_facts import frame_facts
from support.gil.pypy_library import Library, compiled

_TYPES = (
    b"member0    ?\n"
    b"member1    GcStruct pypy.interpreter.pyframe.PyFrame"
    b" { super, inst_space, inst_f_backref, inst_last_instr, inst_pycode }\n"
    b"member2    GcStruct pypy.interpreter.eval.Code { super, inst_co_name }\n"
    b"member3    GcStruct pypy.interpreter.pycode.PyCode { super, inst_space, inst_co_code,"
    b" inst_co_filename, inst_co_firstlineno, inst__vmprof_unique_id, inst_co_lnotab }\n"
    b"member4    GcStruct pypy.interpreter.executioncontext.ExecutionContext"
    b" { super, inst_profilefunc, inst_topframeref }\n"
    b"member5    GcStruct JitVirtualRef { super, virtual_token, forced }\n"
    b"member6    GcStruct rpython.rlib.rvmprof.rvmprof.WeakCodeObjectList { super, inst_handles }\n"
    b"member7    GcStruct pypy.objspace.StdObjSpaceFrame { super }\n"
    b"member8    last\n"
)
_HEAD = """
struct thread { int ready, unused; long stack_end; void *previous, *next; };
struct thread %s = {-1, 0, 0, &%s, &%s};
"""


def _library(folder: Path, types: bytes = _TYPES, heads: tuple[str, ...] = ("head",)) -> Library:
    count = types.count(b"member") - 1
    numbers = range(0, 8 * count, 8)
    listed = struct.pack(f"<Q{count}I", count, *numbers)
    arrays = {
        "stream": zlib.compress(types, 9),
        # Of words, that lie as such in memory.
        "numbers": listed,
    }
    more = "".join(
        f"unsigned char {name}[] __attribute__((aligned(8))) = {{{', '.join(map(str, content))}}};"
        for name, content in arrays.items()
    )
    begin, one = _HEAD.strip().split("\n")
    more += "long zeros[512];" + begin + "".join(one % ((name,) * 3) for name in heads)
    return compiled(folder, more=more, option="-fvisibility=hidden")


def test_offsets_are_read_from_the_table_of_types(tmp_path: Path) -> None:
    """
    A header of 8 bytes, then the fields in their order; those of code behind what it inherits.
    """
    library = _library(tmp_path)
    facts, lacks = frame_facts(library.image)

    assert lacks.endswith("this PyPy has no JIT, or notes of it of another form")
    assert {
        "type.frame": 8,
        "type.other_frame": 56,
        "type.code": 24,
        "type.codes": 48,
        "type.context": 32,
        "type.virtual": 40,
        "frame.caller": 8,
        "frame.instruction": 16,
        "frame.code": 24,
        "context.frame": 16,
        "code.name": 8,
        "code.file": 40,
        "code.first_line": 48,
        "code.number": 56,
        "code.lines": 64,
    } == {name: at for name, at in facts.items() if "." in name and not name.endswith(".size")}


def test_the_list_of_threads_leads_to_itself(tmp_path: Path) -> None:
    """
    Nobody is in it in the file: its head is the one structure of that form.
    """
    library = _library(tmp_path)
    facts, _ = frame_facts(library.image)

    assert library.symbols["head"] == facts["threads"]
    assert facts["bss"] <= library.symbols["zeros"] < facts["bss"] + facts["bss.size"]
    assert facts["data"] <= library.symbols["stream"] < facts["data"] + facts["data.size"]


@pytest.mark.parametrize(
    ("types", "heads", "words"),
    [
        (_TYPES, (), "has 0 lists of threads"),
        (_TYPES, ("head", "another"), "has 2 lists of threads"),
        (_TYPES.replace(b"PyFrame", b"Frame"), ("head",), "lacks one of the types"),
        (_TYPES.replace(b"JitVirtualRef", b"VirtualRef"), ("head",), "lacks one of the types"),
        (_TYPES.replace(b"inst_pycode", b"inst_code"), ("head",), "has no inst_pycode in "),
        (_TYPES.replace(b"inst_co_filename", b"inst_file"), ("head",), "lacks one of the fields"),
        (_TYPES.replace(b"member0", b"unknown"), ("head",), "has no table of its types"),
    ],
    ids=("none", "two", "frame", "virtual", "code", "file", "table"),
)
def test_what_is_not_certain_is_refused(
    tmp_path: Path, types: bytes, heads: tuple[str, ...], words: str
) -> None:
    """
    Then stacks are not read; nothing is guessed.
    """
    with pytest.raises(GilCodeNotFound, match=words):
        frame_facts(_library(tmp_path, types, heads).image)
