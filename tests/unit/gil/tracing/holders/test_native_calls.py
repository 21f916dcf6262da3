"""The calls between Python code and C code that computes."""

import os
import threading

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.gil.tracing.holders.native_calls import (
    NativeCalls,
    calls_to_python,
    evaluates_python,
)
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.code_places import CodePlace, CodePlaces

_SPIN, _CALL = CodePlace("libspin.so", "spin"), CodePlace("libffi.so.8", "ffi_call")
_NAMELESS = CodePlace("_ctypes.so", "")
_PYTHON = CodePlace("python3.11", "_PyEval_EvalFrameDefault")


def test_callers_up_to_python_code() -> None:
    """
    Functions without a name are told by their file, once.
    """
    stack = [_CALL, _NAMELESS, _NAMELESS, _PYTHON, _CALL]

    assert ("libffi.so.8 ffi_call", "_ctypes.so") == calls_to_python([stack])


def test_what_most_samples_have() -> None:
    """
    None of them where there are none, or nothing was found in them.
    """
    assert ("libspin.so spin",) == calls_to_python([[_SPIN], [_CALL, _PYTHON], [_SPIN, _PYTHON]])
    assert () == calls_to_python([])
    assert () == calls_to_python([[], []])
    assert () == calls_to_python([[None, _SPIN]])


def test_what_evaluates_python() -> None:
    """
    By the name of the function.
    """
    assert [True, False, False] == [evaluates_python(each) for each in (_PYTHON, _SPIN, None)]


def test_a_thread_of_this_process() -> None:
    """
    One that computes is in Python code's evaluation, or has come there through it.
    """
    ends = threading.Event()

    def compute() -> None:
        while not ends.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    assert thread.native_id is not None
    try:
        mappings = CodeMappings(os.getpid())
        places = CodePlaces(os.getpid(), mappings)
        calls = NativeCalls(os.getpid(), mappings, X86_64.sampled_registers)
        chains = calls.sampled(thread.native_id, 0.02)
    finally:
        ends.set()
        thread.join()

    assert chains
    assert all(any(evaluates_python(places.place(each)) for each in chain) for chain in chains)
