"""Holds the offsets of every version against numbers that were taken from headers and builds."""

import re
from dataclasses import astuple, fields, replace

import pytest

from gilscope.arch.aarch64.architecture import AARCH64
from gilscope.errors import UnsupportedPython
from gilscope.runtimes.cpython.code.line_table import LineTableForm
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.layout import Layout, layout_for
from support.gil.python_in_memory import LAYOUTS

# One row a member, one column a version, as offsetof() and the debug offsets give them.
_VERSIONS = [
    "3.6.15",
    "3.7.16",
    "3.8.18",
    "3.9.18",
    "3.10.13",
    "3.11.7",
    "3.12.1",
    "3.13.5",
    "3.14.10",
    "3.15.2",
    "3.13.12t",
    "3.14.9t",
    "3.15.1t",
]
_TABLE = """
    interpreters_head   0    24   32   32   32   40   40   632  808  936  632  808  936
    interpreter_next    0    0    0    0    0    0    0    7264 7272 7264 7264 7272 7264
    interpreter_id      -    16   16   24   24   48   8    7272 7280 7272 7272 7280 7272
    threads_head        8    8    8    8    8    16   72   7344 7344 7336 7344 7344 7336
    gil_in_runtime      1056 1264 1152 352  352  360  -    -    -    -    -    -    -
    gil_pointer         -    -    -    -    -    -    384  16   16   16   16   16   16
    gil_cond            0    32   32   32   32   32   32   32   32   32   40   40   40
    tstate_next         8    8    8    8    8    8    8    8    8    8    8    8    8
    tstate_interpreter  16   16   16   16   16   16   16   16   16   16   16   16   16
    thread_id           152  176  176  176  176  152  136  152  152  176  152  152  176
    native_thread_id    -    -    -    -    -    160  144  160  160  184  160  160  184
    frame_path          24   24   24   24   24   56+8 56+0 72   72   72   72   72   72
    frame_previous      24   24   24   24   24   48   8    8    8    8    8    8    8
    frame_code          32   32   32   32   32   32   0    0    0    0    0    0    0
    frame_instruction   120  104  104  104  96   56   56   56   56   56   56   56   56
    instruction_is_pointer\
                        no   no   no   no   no   yes  yes  yes  yes  yes  yes  yes  yes
    frame_owner         -    -    -    -    -    69   70   70   74   74   70   78   78
    frame_root          132  116  116  116  108  68   70   70   74   74   70   78   78
    frame_root_marks    1    1    1    1    0+2  1    3+4  3+4  3+4  3+4  3+4  3+4  3+4
    code_name           104  104  112  112  112  128  128  128  128  128  144  144  144
    code_file           96   96   104  104  104  112  112  112  112  112  128  128  128
    code_first_line     36   36   40   40   40   72   68   68   68   68   84   84   84
    code_line_table     112  112  120  120  120  136  136  136  136  136  152  152  152
    line_table_form     INC  INC  INC  INC  RAN  LOC  LOC  LOC  LOC  LOC  LOC  LOC  LOC
    code_bytecode       40   40   48   48   48   184  192  200  208  208  216  232  232
    object_length       16   16   16   16   16   16   16   16   16   16   32   32   32
    bytes_content       32   32   32   32   32   32   32   32   32   32   48   48   48
    str_length          16   16   16   16   16   16   16   16   16   16   32   32   32
    str_state           32   32   32   32   32   32   32   32   32   32   48   48   48
    str_ascii           48   48   48   48   48   48   40   40   40   40   56   56   56
    str_wide            72   72   72   72   72   72   56   56   56   56   72   72   72
    gc_collecting       512  632  544  816  816  848  312  7600 7600 7512 7600 7600 7512
    gc_in_runtime       yes  yes  yes  no   no   no   no   no   no   no   no   no   no
    gc_counts           340+388 -196+-148 \
                        -132+-108 -132+-108 -132+-108 -132+-108 -132+-108 -132+-108 \
                        . . . . .
    object_type         8    8    8    8    8    8    8    8    8    8    24   24   24
    str_kind            2    2    2    2    2    2    2    2    2    2    2    8    8
    str_hash            24   24   24   24   24   24   24   24   24   24   40   40   40
    line_table_content\
                        32   32   32   32   32   32   32   32   32   32   48   48   48
    code_thread_bytecode\
                        -    -    -    -    -    -    -    -    -    -    -    224  224
    modules             -    -    -    -    -    -    -    -    -    -    \
                        7664+48+40+72+8+0 7712+48+40+72+8+0 7592+48+64+65+1+1
"""
# The same in all of them.
_GIL_STRUCT = "48+88+-32+-24+-16+-8+False+None"
# Of 3.6 only the variables' addresses tell, and its mutex is not looked for.
_VARIABLES = "0+88+-32+-24+-16+-8+True+None"
# One more member, before all others.
_FREE_THREADED = "48+88+-32+-24+-16+-8+False+-40"
_PTHREAD = "48+40+16+720"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, LineTableForm):
        return value.name[:3]
    return "+".join(map(str, value)) or "." if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize("version", _VERSIONS)
def test_offsets(version: str) -> None:
    """Each member of each version is where its headers or its own table put it."""
    rows = [line.split() for line in _TABLE.strip().splitlines()]
    expected = {row[0]: row[1 + _VERSIONS.index(version)] for row in rows}
    lock = _VARIABLES if version.startswith("3.6.") else _GIL_STRUCT
    if version.endswith("t"):
        lock = _FREE_THREADED
    expected |= {"gil_struct": lock, "pthread": _PTHREAD}
    # CPython 2.7 alone has them otherwise.
    expected |= {"has_tstate_previous": "yes", "is_str_bytes": "no"}
    names = [field.name for field in fields(Layout)]
    assert expected == dict(zip(names, map(_cell, astuple(LAYOUTS[version])), strict=True))


@pytest.mark.parametrize("minor", [(3, 5), (3, 13), (3, 16)])
def test_an_unknown_version_has_no_layout(minor: tuple[int, int]) -> None:
    """No layout is guessed from its neighbours, nor for 3.13 and later without their own table."""
    version = f"{minor[0]}.{minor[1]}.0"
    with pytest.raises(UnsupportedPython, match=re.escape(f"CPython {version}")):
        layout_for(Interpreter(minor, version, 0x1000, 0x2000, None))


@pytest.mark.parametrize("minor", [(3, 7), (3, 8), (3, 9), (3, 10), (3, 11), (3, 12)])
def test_on_aarch64_only_what_lies_behind_the_mutex_is_elsewhere(minor: tuple[int, int]) -> None:
    """By the debug information of 3.9.2 and 3.11.2 for arm64: a mutex has 48 bytes there."""
    version = f"{minor[0]}.{minor[1]}.0"
    here = layout_for(Interpreter(minor, version, 0x1000, 0x2000, None))
    there = layout_for(Interpreter(minor, version, 0x1000, 0x2000, None, pthread=AARCH64.pthread))

    assert [88, 96] == [layout.gil_struct.switch_cond for layout in (here, there)]
    assert here == replace(there, gil_struct=here.gil_struct, pthread=here.pthread)
    assert replace(here.gil_struct, switch_cond=96) == there.gil_struct
