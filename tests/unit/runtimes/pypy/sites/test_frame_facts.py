"""Where a PyPy's file says that threads, frames and code are."""

import struct
import zlib
from pathlib import Path

import pytest

from gilscope.elf.budget import MOST_STEPS
from gilscope.elf.image import ElfImage
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


_TYPES_WITH_JIT = _TYPES.replace(
    b"{ super, inst_space, inst_f", b"{ super, vable_token, inst_f"
).replace(
    b"member8    last\n",
    b"member8    GcStruct rpython.jit.metainterp.jitprof.Profiler"
    b" { super, inst_calls, inst_current }\n"
    b"member9    GcStruct JITFRAME_DUMMY { super }\n"
    b"member10   last\n",
)
_PROFILER, _MARK = 8 * 8, 9 * 8
"""Numbers of their types."""


def _own_work(tests: int, profiler: int = _PROFILER, *, sections: int = -1) -> str:
    """Return the text of C that has what PyPy notes, with so many *tests* of whether to log."""
    test = 'asm("testb $1, sections(%rip)");'
    return (
        f"long sections = {sections}, few = -1;"
        f"struct object {{ long header, calls; void *current; }};"
        f"struct object profiler = {{3L << 32 | {profiler}}}, mark = {{3L << 32 | {_MARK}}};"
        f'void log_all(void) {{ {tests * test} asm("testb $1, few(%rip)"); }}'
    )


def _library(
    folder: Path,
    types: bytes = _TYPES,
    heads: tuple[str, ...] = ("head",),
    more: str = "",
) -> Library:
    count = types.count(b"member") - 1
    numbers = range(0, 8 * count, 8)
    listed = struct.pack(f"<Q{count}I", count, *numbers)
    arrays = {
        "stream": zlib.compress(types, 9),
        # Of words, that lie as such in memory.
        "numbers": listed,
    }
    more += "".join(
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


def test_what_pypy_notes_of_its_own_work_is_found(tmp_path: Path) -> None:
    """
    The word that is tested in many places, and the one object of each of two types.
    """
    library = _library(tmp_path, _TYPES_WITH_JIT, more=_own_work(40))
    facts, lacks = frame_facts(library.image)

    assert "" == lacks
    assert {
        "sections": library.symbols["sections"],
        "jit.current": library.symbols["profiler"] + 16,
        "jit.mark": library.symbols["mark"],
        "frame.token": 8,
    } == {name: facts[name] for name in ("sections", "jit.current", "jit.mark", "frame.token")}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (_own_work(20), "this PyPy has 0 words that sections are noted in"),
        (_own_work(40, sections=-2), "this PyPy has 0 words that sections are noted in"),
        (_own_work(40, profiler=_MARK), "this PyPy has 0 notes of the JIT, not one"),
    ],
    ids=("rare", "begun", "none"),
)
def test_own_work_that_is_not_certain_is_not_told(tmp_path: Path, more: str, words: str) -> None:
    """
    Stacks are read all the same.
    """
    facts, lacks = frame_facts(_library(tmp_path, _TYPES_WITH_JIT, more=more).image)

    assert f"garbage collection and compilation are not told: {words}" == lacks
    assert "sections" not in facts
    assert "frame.caller" in facts


def test_own_work_of_a_file_that_is_too_large_is_not_told(tmp_path: Path) -> None:
    """
    Nor is the file refused for it: it is what is looked for last.
    """
    library = _library(tmp_path, _TYPES_WITH_JIT, more=_own_work(40))
    frame_facts(library.image)
    again = ElfImage((tmp_path / "made.so").read_bytes())
    again.budget.spend(MOST_STEPS - library.image.budget.steps + 1)
    facts, lacks = frame_facts(again)

    assert "are not told: too complex" in lacks
    assert "sections" not in facts
    assert "frame.caller" in facts


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
