"""Tells the probes where a process' Python keeps its threads and their frames."""

import os
from pathlib import Path

from gilscope.runtimes.cpython.code.code_objects import code_pointers
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.values import Record

__all__ = ["MAX_FRAME_SIZE", "frame_walk", "namespace"]

_POINTER = 8
MAX_FRAME_SIZE = 128
"""Of it the probes keep less than that: see ``MAX_FRAME_SIZE`` there."""
_OWN_NAMESPACE = Path("/proc/self/ns/pid")


def frame_walk(pid: int, runtime: Runtime) -> Record:
    """Return ``struct python`` of the probes for process *pid*; raises OSError if it has gone."""
    layout = runtime.layout
    device, inode = namespace(pid)
    tstate_frame, *cframe_frame = layout.frame_path
    pointers, pointers_size = code_pointers(layout)
    members_end = {
        layout.frame_previous + _POINTER,
        layout.frame_code + _POINTER,
        layout.frame_instruction + (_POINTER if layout.instruction_is_pointer else 4),
        (layout.frame_owner or 0) + 1,
        layout.frame_root + 1,
    }
    offsets = (layout.frame_previous, layout.frame_code, layout.frame_instruction)
    # What comes before is not read where a frame is too long otherwise: the copy has limited room.
    begin = 0 if max(members_end) < MAX_FRAME_SIZE else min(offsets)
    return {
        "interpreters": runtime.address + layout.interpreters_head,
        "namespace_device": device,
        "namespace_inode": inode,
        "interpreter_next": layout.interpreter_next,
        "threads_head": layout.threads_head,
        "gil_pointer": layout.gil_pointer or 0,
        "gil_cond": layout.gil_cond,
        "tstate_next": layout.tstate_next,
        "tstate_interpreter": layout.tstate_interpreter,
        "has_tstate_previous": int(layout.has_tstate_previous),
        "thread_id": layout.thread_id,
        "native_thread_id": layout.native_thread_id or 0,
        "descriptor_tid": layout.pthread.descriptor_tid,
        "tstate_frame": tstate_frame,
        "cframe_frame": cframe_frame[0] if cframe_frame else 0,
        "has_cframe": int(bool(cframe_frame)),
        "frame_begin": begin,
        "frame_size": max(members_end) - begin,
        "frame_previous": layout.frame_previous - begin,
        "frame_code": layout.frame_code - begin,
        "frame_instruction": layout.frame_instruction - begin,
        "instruction_is_pointer": int(layout.instruction_is_pointer),
        "frame_owner": layout.frame_owner - begin if layout.frame_owner else 0,
        "frame_root": layout.frame_root - begin,
        "frame_root_marks": sum(1 << mark for mark in layout.frame_root_marks),
        "code_pointers": pointers,
        "code_pointers_size": pointers_size,
        "str_hash": layout.str_hash,
        "line_table_content": layout.line_table_content,
    }


def namespace(pid: int) -> tuple[int, int]:
    """Return device and inode of the pid namespace of *pid*, zeros for the agent's own."""
    # The kernel gives the agent's view of a thread's id; the interpreter has that of its own
    # namespace.
    theirs, own = Path(f"/proc/{pid}/ns/pid").stat(), _OWN_NAMESPACE.stat()
    return (0, 0) if os.path.samestat(theirs, own) else (theirs.st_dev, theirs.st_ino)
