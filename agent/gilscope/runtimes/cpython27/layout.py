"""Says where the structures of CPython 2.7 keep what gilscope reads."""

from dataclasses import replace
from typing import Final

from gilscope.runtimes.cpython.code.line_table import LineTableForm
from gilscope.runtimes.cpython.layout import CPYTHON_3_8, Layout

__all__ = ["CHECK_INTERVAL_SIZE", "LAYOUT", "TICK_COUNTER"]

CHECK_INTERVAL_SIZE: Final = 4
TICK_COUNTER: Final = 128
"""In the thread state: int, how often the thread has come to its next tick, where it gives the lock
away for an instant."""

# Each number was printed by offsetof() or sizeof() in a C program, compiled against the headers of
# 2.7.18; they have not changed since 2.7.0. x86-64 only. "The runtime" of a layout is `interp_head`
# here: what is read of it is that pointer alone.
LAYOUT: Final[Layout] = replace(
    CPYTHON_3_8,
    interpreters_head=0,
    interpreter_next=0,  # PyInterpreterState.next
    interpreter_id=None,
    threads_head=8,  # PyInterpreterState.tstate_head
    gil_in_runtime=None,
    gil_pointer=None,
    tstate_next=0,  # PyThreadState.next
    has_tstate_previous=False,
    tstate_interpreter=8,  # PyThreadState.interp
    thread_id=144,  # PyThreadState.thread_id
    native_thread_id=None,
    frame_path=(16,),  # PyThreadState.frame
    frame_previous=24,  # PyFrameObject.f_back
    frame_code=32,  # PyFrameObject.f_code
    frame_instruction=120,  # PyFrameObject.f_lasti
    # PyFrameObject.f_stacktop is NULL in a frame that runs; a generator that has been left, whose
    # chain ends in it, has a pointer there. This byte of it is hardly ever 0.
    frame_root=73,
    frame_root_marks=(0,),
    code_name=88,  # PyCodeObject.co_name
    code_file=80,  # PyCodeObject.co_filename
    code_first_line=96,  # PyCodeObject.co_firstlineno
    code_line_table=104,  # PyCodeObject.co_lnotab
    line_table_form=LineTableForm.UNSIGNED_INCREMENTS,
    code_bytecode=32,  # PyCodeObject.co_code
    bytes_content=36,  # PyStringObject.ob_sval
    str_length=16,  # PyVarObject.ob_size
    is_str_bytes=True,
)
