"""Says where CPython's structures keep what gilscope reads, for every supported version."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gilscope.arch.base import PthreadLayout
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.errors import UnsupportedPython
from gilscope.runtimes.cpython.code.line_table import LineTableForm
from gilscope.runtimes.cpython.code.module_layout import ModuleLayout, module_layout
from gilscope.runtimes.cpython.debug_offsets import read_members
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.gil_struct import (
    FREE_THREADED_ENABLED,
    GLIBC_X86_64,
    GilStruct,
)
from gilscope.runtimes.cpython.sites.static_lock import StaticLock
from gilscope.values import dataclass

__all__ = [
    "CPYTHON_3_8",
    "Layout",
    "layout_for",
]


_BYTES_CONTENT: Final = 32
"""In a bytes object of every version that always has a GIL (``struct PyBytesObject``)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes; *runtime* is `_PyRuntime`, *interpreter* a PyInterpreterState."""

    interpreters_head: int
    """In the runtime: pointer to the newest interpreter."""
    interpreter_next: int
    interpreter_id: int | None
    """None before CPython 3.7: they have no number."""
    threads_head: int
    """In the interpreter: pointer to its newest thread."""
    gil_in_runtime: int | None
    """From the runtime: the one GIL of the process; None where interpreters may have their own."""
    gil_pointer: int | None
    """In the interpreter: pointer to its GIL; None where there is one in the runtime."""
    gil_cond: int
    """In a GIL: the condition variable that identifies it."""
    tstate_next: int
    tstate_interpreter: int
    thread_id: int
    """In the thread state: pthread_self()."""
    native_thread_id: int | None
    """In the thread state: the kernel's id; None before CPython 3.11."""
    frame_path: tuple[int, ...]
    """From the thread state to its innermost frame: add each offset in turn and follow."""
    frame_previous: int
    frame_code: int
    frame_instruction: int
    """In the frame: where it is in its code; 32 bits, or a pointer: see the next member."""
    instruction_is_pointer: bool
    """True: that is the address of an instruction (3.11+), and the instructions are part of the
    code object. False: it is a number (`f_lasti`), and they are in a bytes object."""
    frame_owner: int | None
    """In the frame: one byte, 3 or more where it runs no Python code; None before CPython 3.11."""
    frame_root: int
    """In the frame: one byte that tells the first frame of a thread from one that was left."""
    frame_root_marks: tuple[int, ...]
    """The values of that byte in a first frame."""
    code_name: int
    """In the code object: the qualified name where the version has one, else the plain name."""
    code_file: int
    code_first_line: int
    code_line_table: int
    """In the code object: pointer to the bytes object that maps instructions to lines."""
    line_table_form: LineTableForm
    code_bytecode: int
    """In the code object: its first instruction, or pointer to the bytes object with all."""
    object_length: int
    """In a bytes object: how many bytes. In a code object with its own instructions: how many
    units of two bytes these are."""
    bytes_content: int
    str_length: int
    str_state: int
    """In a str: 32 bits, with `kind`, which has three, `compact` and `ascii` in a row."""
    str_ascii: int
    """In a str: the characters, if all of them are ASCII."""
    str_wide: int
    """In a str: the characters otherwise."""
    gc_collecting: int | None
    """In the interpreter, or in the runtime: 4 bytes, not 0 while garbage is collected; None: not
    known."""
    gc_in_runtime: bool = False
    """Whether that is in the runtime."""
    gc_counts: tuple[int, ...] = ()
    """From there to the counts of the second and the third generation, 4 bytes each; empty: not
    known."""
    object_type: int = 8
    """In any object: pointer to its type."""
    str_kind: int = 2
    """Of these bits: where `kind` begins."""
    str_hash: int = 24
    """In a str: its hash, -1 until somebody has asked for it."""
    line_table_content: int = _BYTES_CONTENT
    """In the bytes object with a line table: what the probes know it by."""
    code_thread_bytecode: int | None = None
    """In the code object: pointer to how many copies of its instructions there are, and then to
    each, of which a thread runs its own; None: all threads run the same."""
    is_str_bytes: bool = False
    """A str is a bytes object, and has neither state nor kinds (CPython 2)."""
    has_tstate_previous: bool = True
    """Whether the thread state begins with a pointer to the newer one."""
    modules: ModuleLayout | None = None
    """None: of a build that always has its GIL."""
    gil_struct: GilStruct = GLIBC_X86_64
    """Around `cond` of a GIL."""
    pthread: PthreadLayout = X86_64.pthread


# Each number was printed by offsetof() or sizeof() in a C program, compiled with Py_BUILD_CORE
# against the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1, or comes from the debug
# information of 3.6.15 and 3.7.16; the structures do not change after a version's first release
# candidate. tests/live/attach/test_runtime.py walks live processes of each version with them.
# On aarch64 they are the same but for glibc's types of threads, by the debug information of 3.9.2
# and 3.11.2.
#
# What made the difference is named by the pull request of python/cpython, which is one commit.
_GENERATION_COUNTS = (-132, -108)  # struct _gc_runtime_state: generations[1..2].count - collecting
CPYTHON_3_8 = Layout(
    interpreters_head=32,  # _PyRuntimeState.interpreters.head
    interpreter_next=0,  # struct _is.next
    interpreter_id=16,  # struct _is.id
    threads_head=8,  # struct _is.tstate_head
    gil_in_runtime=1152,  # _PyRuntimeState.ceval.gil
    gil_pointer=None,
    gil_cond=-GLIBC_X86_64.begin,  # struct _gil_runtime_state.cond
    tstate_next=8,  # PyThreadState.next
    tstate_interpreter=16,  # PyThreadState.interp
    thread_id=176,  # PyThreadState.thread_id
    native_thread_id=None,
    frame_path=(24,),  # PyThreadState.frame
    frame_previous=24,  # PyFrameObject.f_back
    frame_code=32,  # PyFrameObject.f_code
    frame_instruction=104,  # PyFrameObject.f_lasti
    instruction_is_pointer=False,
    frame_owner=None,
    frame_root=116,  # PyFrameObject.f_executing
    frame_root_marks=(1,),
    code_name=112,  # PyCodeObject.co_name
    code_file=104,  # PyCodeObject.co_filename
    code_first_line=40,  # PyCodeObject.co_firstlineno
    code_line_table=120,  # PyCodeObject.co_lnotab
    line_table_form=LineTableForm.INCREMENTS,
    code_bytecode=48,  # PyCodeObject.co_code
    object_length=16,  # PyVarObject.ob_size
    bytes_content=_BYTES_CONTENT,
    str_length=16,  # PyASCIIObject.length
    str_state=32,  # PyASCIIObject.state
    str_ascii=48,  # sizeof(PyASCIIObject)
    str_wide=72,  # sizeof(PyCompactUnicodeObject)
    gc_collecting=544,  # _PyRuntimeState.gc.collecting
    gc_in_runtime=True,
    gc_counts=_GENERATION_COUNTS,
)
# In v3.8: GH-12701 ("bpo-36540: PEP 570 -- Implementation"), code objects count positional-only
# arguments; with bpo-33597 ("Reduce PyGC_Head size"), the heads of generations are smaller, and the
# runtime holds less before them.
_CPYTHON_3_7 = replace(
    CPYTHON_3_8,
    interpreters_head=24,
    gil_in_runtime=1264,
    code_name=104,
    code_file=96,
    code_first_line=36,
    code_line_table=112,
    code_bytecode=40,
    gc_collecting=632,
    gc_counts=(-196, -148),
)
# In v3.7: bpo-30860 ("Consolidate stateful runtime globals"), the lock, the list of interpreters
# and what the garbage collector knows became members of _PyRuntime. Before, each is a variable.
_CPYTHON_3_6 = replace(
    _CPYTHON_3_7,
    interpreters_head=0,
    interpreter_id=None,
    thread_id=152,
    frame_instruction=120,
    frame_root=132,
)
_CPYTHON_3_9 = replace(
    CPYTHON_3_8,
    interpreter_id=24,
    gil_in_runtime=352,
    gc_collecting=816,  # PyInterpreterState.gc.collecting
    gc_in_runtime=False,
)
# In v3.10: GH-23113 ("bpo-42246: Partial implementation of PEP 626."), lines are ranges of code.
_CPYTHON_3_10 = replace(
    _CPYTHON_3_9,
    frame_instruction=96,
    frame_root=108,  # PyFrameObject.f_state
    frame_root_marks=(0, 2),  # FRAME_EXECUTING, FRAME_UNWINDING
    line_table_form=LineTableForm.RANGES,  # in co_linetable, where co_lnotab was
)
# In v3.11: GH-27077 ("bpo-44590: Lazily allocate frame objects"), frames are no objects any more;
# with GH-91666 ("GH-88116: Use a compact format to represent end line and column offsets."),
# with GH-25458 ("bpo-43879: Add native_thread_id field to PyThreadState"), and
# with GH-29971 ("bpo-46008: Move thread-related interpreter state into a sub-struct.").
_CPYTHON_3_11 = replace(
    _CPYTHON_3_10,
    interpreters_head=40,
    interpreter_id=48,  # PyInterpreterState.id
    threads_head=16,  # PyInterpreterState.threads.head
    gil_in_runtime=360,
    thread_id=152,
    native_thread_id=160,  # PyThreadState.native_thread_id
    frame_path=(56, 8),  # PyThreadState.cframe, _PyCFrame.current_frame
    frame_previous=48,  # _PyInterpreterFrame.previous
    frame_code=32,  # _PyInterpreterFrame.f_code
    frame_instruction=56,  # _PyInterpreterFrame.prev_instr
    instruction_is_pointer=True,
    frame_owner=69,  # _PyInterpreterFrame.owner
    frame_root=68,  # _PyInterpreterFrame.is_entry
    frame_root_marks=(1,),
    code_name=128,  # PyCodeObject.co_qualname
    code_file=112,
    code_first_line=72,
    code_line_table=136,  # PyCodeObject.co_linetable
    line_table_form=LineTableForm.LOCATIONS,
    code_bytecode=184,  # PyCodeObject.co_code_adaptive
    gc_collecting=848,
)
# From 3.12 on every stack ends in a frame that C code has put there.
_ENTRY_OWNERS = (3, 4)
# In v3.12: GH-104203 ("gh-99113: Share the GIL via PyInterpreterState.ceval.gil"), each interpreter
# points to its lock; GH-100988 ("GH-100987: Refactor `_PyInterpreterFrame` a bit, to assist
# generator improvement."); GH-92537 ("gh-92536: PEP 623: Remove wstr from unicode").
_CPYTHON_3_12 = replace(
    _CPYTHON_3_11,
    interpreter_id=8,
    threads_head=72,
    gil_in_runtime=None,
    gil_pointer=384,  # PyInterpreterState.ceval.gil
    thread_id=136,
    native_thread_id=144,
    frame_path=(56, 0),
    frame_previous=8,
    frame_code=0,
    frame_owner=70,
    frame_root=70,
    frame_root_marks=_ENTRY_OWNERS,
    code_first_line=68,
    code_bytecode=192,
    str_ascii=40,
    str_wide=56,
    gc_collecting=312,
)
_BY_MINOR: Mapping[tuple[int, int], Layout] = {
    (3, 6): _CPYTHON_3_6,
    (3, 7): _CPYTHON_3_7,
    (3, 8): CPYTHON_3_8,
    (3, 9): _CPYTHON_3_9,
    (3, 10): _CPYTHON_3_10,
    (3, 11): _CPYTHON_3_11,
    (3, 12): _CPYTHON_3_12,
}


_COLLECTING_3_13 = 200


def layout_for(interpreter: Interpreter) -> Layout:
    """Return the layout of *interpreter*.

    Raises UnsupportedPython for a version without a known layout, and GilCodeNotFound when a file
    of 3.13 or later describes itself in a way that cannot be true.
    """
    if interpreter.debug_offsets is not None:
        members = read_members(interpreter.minor, interpreter.debug_offsets)
        layout = _self_described(members)
        if interpreter.is_free_threaded:
            layout = _free_threaded(layout, interpreter.minor, members["imported_modules"])
    elif interpreter.minor in _BY_MINOR:
        layout = _BY_MINOR[interpreter.minor]
    else:
        raise UnsupportedPython(f"the structures of CPython {interpreter.version} are not known")
    if interpreter.static_lock is not None:
        return _with_variables(layout, interpreter.static_lock)
    if interpreter.pthread == layout.pthread:
        return layout
    # Nothing that is read lies behind the lock in the structure that holds it.
    pthread = interpreter.pthread
    return replace(layout, gil_struct=GilStruct.of(pthread), pthread=pthread)


def _with_variables(layout: Layout, lock: StaticLock) -> Layout:
    """Return *layout* with *lock*; the runtime is the pointer to the newest interpreter."""
    cond, collecting = lock.cond, lock.collecting
    return replace(
        layout,
        gil_in_runtime=cond - lock.interpreters,
        gil_cond=0,
        gil_struct=GilStruct(
            mutex=0,
            switch_cond=lock.switch_cond - cond,
            interval=lock.interval - cond,
            last_holder=lock.last_holder - cond,
            locked=lock.locked - cond,
            switch_number=lock.switch_number - cond,
            is_scattered=True,
        ),
        gc_collecting=None if collecting is None else collecting - lock.interpreters,
        gc_counts=() if collecting is None else tuple(at - collecting for at in lock.counts),
    )


def _free_threaded(layout: Layout, minor: tuple[int, int], imported_modules: int) -> Layout:
    """Return *layout* of a build that says whether it uses its lock.

    *imported_modules* is where an interpreter has them.

    In v3.13: GH-116338 ("gh-116322: Enable the GIL while loading C extension modules"). How it
    counts what its generations hold was not looked at. Since v3.14 a str's state begins with a
    whole byte, which threads change without a lock.
    """
    gil_struct = replace(layout.gil_struct, enabled=FREE_THREADED_ENABLED)
    str_kind = 8 if minor >= (3, 14) else layout.str_kind
    modules = module_layout(minor, imported_modules)
    return replace(layout, gil_struct=gil_struct, gc_counts=(), str_kind=str_kind, modules=modules)


# In v3.13: GH-106598 ("gh-106597: Add debugging struct with offsets for out-of-process tools"),
# _PyRuntime begins with a table of these offsets, and GH-108036 ("GH-108035: Remove the
# `_PyCFrame` struct as it is no longer needed for performance."). In v3.14: GH-123924 ("gh-123923:
# Defer refcounting for `f_executable` in `_PyInterpreterFrame`"), hence REFERENCE_FLAGS.
def _self_described(member: Mapping[str, int]) -> Layout:
    return Layout(
        interpreters_head=member["interpreters_head"],
        interpreter_next=member["interpreter_next"],
        interpreter_id=member["interpreter_id"],
        threads_head=member["threads_head"],
        gil_in_runtime=None,
        gil_pointer=member["gil_pointer"],
        gil_cond=member["own_gil_locked"] - member["own_gil"] - GLIBC_X86_64.locked,
        tstate_next=member["tstate_next"],
        tstate_interpreter=member["tstate_interpreter"],
        thread_id=member["thread_id"],
        native_thread_id=member["native_thread_id"],
        frame_path=(member["tstate_frame"],),
        frame_previous=member["frame_previous"],
        frame_code=member["frame_code"],
        frame_instruction=member["frame_instruction"],
        instruction_is_pointer=True,
        frame_owner=member["frame_owner"],
        frame_root=member["frame_owner"],
        frame_root_marks=_ENTRY_OWNERS,
        code_name=member["code_name"],
        code_file=member["code_file"],
        code_first_line=member["code_first_line"],
        code_line_table=member["code_line_table"],
        line_table_form=LineTableForm.LOCATIONS,
        code_bytecode=member["code_bytecode"],
        object_length=member["bytes_length"],
        bytes_content=member["bytes_content"],
        str_length=member["str_length"],
        str_state=member["str_state"],
        str_ascii=member["str_ascii"],
        # PyCompactUnicodeObject adds utf8_length and a pointer to PyASCIIObject (unicodeobject.h).
        str_wide=member["str_ascii"] + 16,
        gc_collecting=member["gc"] + member["gc_collecting"],
        object_type=member["object_type"],
        # PyASCIIObject: what all objects have, `length`, `hash` (unicodeobject.h).
        str_hash=member["str_length"] + 8,
        line_table_content=member["bytes_content"],
        code_thread_bytecode=member.get("code_thread_bytecode"),
        # The structure of 3.13 is that of 3.8; since v3.14 generations are kept otherwise.
        gc_counts=_GENERATION_COUNTS if member["gc_collecting"] == _COLLECTING_3_13 else (),
    )
