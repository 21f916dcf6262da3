"""Walks Python stacks in memory, whole ones and torn ones."""

import re

import pytest

from gilscope.model.stack import Frame
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.code.frames import outermost_frames, read_code
from support.gil.python_in_memory import LAYOUTS, PythonInMemory
from support.tracing.stacks import read_places

every_version = pytest.mark.parametrize("version", LAYOUTS)
with_owners = pytest.mark.parametrize(
    "version", [version for version, layout in LAYOUTS.items() if layout.frame_owner is not None]
)

_OUTER = Frame("Thread._bootstrap", "/usr/lib/python3.11/threading.py", 995)
_MIDDLE = Frame("worker", "/app/jobs.py", 41)
_INNER = Frame("Job.run.<locals>.<lambda>", "/app/jobs.py", 12)


def _code(python: PythonInMemory, frame: Frame) -> int:
    return python.code(frame.function, frame.file, frame.first_line)


def _thread(python: PythonInMemory, innermost: int) -> int:
    return python.thread(python.interpreter(0), frame=innermost)


def _innermost(python: PythonInMemory, tstate: int, limit: int = 64) -> list[Frame]:
    places = read_places(python.runtime, tstate, limit=limit)
    return [read_code(python.runtime, code) for code, _ in places]


@every_version
def test_a_stack_from_both_ends(version: str) -> None:
    """The innermost frames come innermost first, the outermost ones outermost first."""
    python = PythonInMemory(version)
    tstate = _thread(python, python.stack(*(_code(python, f) for f in (_OUTER, _MIDDLE, _INNER))))
    assert [_INNER, _MIDDLE, _OUTER] == _innermost(python, tstate)
    assert [_INNER, _MIDDLE] == _innermost(python, tstate, limit=2)
    assert [_OUTER, _MIDDLE] == outermost_frames(python.runtime, tstate, 2)
    assert [_OUTER, _MIDDLE, _INNER] == outermost_frames(python.runtime, tstate, 8)


@every_version
def test_a_thread_outside_python_has_no_frames(version: str) -> None:
    """A thread that C code made known and that calls nothing has an empty stack."""
    python = PythonInMemory(version)
    tstate = _thread(python, 0)
    assert ([], []) == (
        _innermost(python, tstate),
        outermost_frames(python.runtime, tstate, 3),
    )


@pytest.mark.parametrize("version", ["3.11.7", "3.12.1"])
def test_a_thread_that_is_being_made_has_no_frames(version: str) -> None:
    """Where a structure stands between thread and frame, it may be missing."""
    python = PythonInMemory(version)
    tstate = _thread(python, 0)
    python.put_int(tstate + python.layout.frame_path[0], 0)
    assert [] == _innermost(python, tstate)


@every_version
def test_the_outermost_frames_of_two_thousand(version: str) -> None:
    """Depth is no obstacle to the two walks that it takes."""
    python = PythonInMemory(version)
    recursive = _code(python, _MIDDLE)
    tstate = _thread(python, python.stack(_code(python, _OUTER), *[recursive] * 2000))
    assert [_OUTER, _MIDDLE, _MIDDLE] == outermost_frames(python.runtime, tstate, 3)
    assert 4000 < python.reads < 4100


@with_owners
@pytest.mark.parametrize("owner", [3, 4])
def test_entry_frames_are_left_out(version: str, owner: int) -> None:
    """A frame that C code put on the stack counts for nothing, whatever it calls its code."""
    python = PythonInMemory(version)
    frame = python.first_frame(_code(python, _OUTER))
    for no_code in (0, python.new(64), 0x7E00_0000_0000):
        frame = python.frame(no_code, frame, owner)
    tstate = _thread(python, python.frame(_code(python, _INNER), frame))
    assert [_INNER, _OUTER] == _innermost(python, tstate)
    assert [_OUTER, _INNER] == outermost_frames(python.runtime, tstate, 2)


@with_owners
@pytest.mark.parametrize("owner", [0, 1, 2])
def test_frames_of_generators_and_debuggers_count(version: str, owner: int) -> None:
    """A frame that lives in a generator or a frame object runs Python code."""
    python = PythonInMemory(version)
    tstate = _thread(python, python.frame(_code(python, _INNER), owner=owner))
    assert [_INNER] == _innermost(python, tstate)


@pytest.mark.parametrize("version", ["3.14.10", "3.15.2"])
def test_the_flags_of_a_code_reference_are_no_part_of_it(version: str) -> None:
    """From 3.14 on the low bits of the reference say who counts it."""
    python = PythonInMemory(version)
    tstate = _thread(python, python.frame(_code(python, _INNER) | 1))
    assert [_INNER] == _innermost(python, tstate)


@pytest.mark.parametrize(
    ("version", "instruction", "size"),
    [("3.8.18", 0x46, 4), ("3.10.13", 0x23, 4), ("3.11.7", None, 8), ("3.15.2", None, 8)],
)
def test_the_instruction_of_a_frame(version: str, instruction: int | None, size: int) -> None:
    """It is a number up to 3.10, and counted from the code object from then on."""
    python = PythonInMemory(version)
    code = _code(python, _INNER)
    frame = python.frame(code)
    stored = code + 0x1F0 if instruction is None else instruction
    python.put_int(frame + python.layout.frame_instruction, stored, size)
    expected = 0x1F0 if instruction is None else instruction
    assert [(code, expected)] == read_places(python.runtime, _thread(python, frame))


def test_a_frame_that_has_not_begun() -> None:
    """Its number is -1, and its instruction the last of 32 bits' range."""
    python = PythonInMemory("3.9.18")
    code = _code(python, _INNER)
    frame = python.frame(code)
    python.put_int(frame + python.layout.frame_instruction, -1, 4)
    assert [(code, 0xFFFFFFFF)] == read_places(python.runtime, _thread(python, frame))


@every_version
def test_a_stack_that_runs_in_a_circle(version: str) -> None:
    """A torn stack ends in an error, never in an endless loop."""
    python = PythonInMemory(version)
    code = _code(python, _INNER)
    outer = python.frame(code)
    inner = python.frame(code, outer)
    python.put_int(outer + python.layout.frame_previous, inner)
    tstate = _thread(python, inner)
    with pytest.raises(TornRead, match="a stack of 2 frames does not end"):
        outermost_frames(python.runtime, tstate, 1)


@every_version
def test_a_stack_that_ends_in_the_middle(version: str) -> None:
    """A frame that the thread has just left leads nowhere; it is not taken for the first one."""
    python = PythonInMemory(version)
    tstate = _thread(python, python.frame(_code(python, _INNER)))
    with pytest.raises(TornRead, match="ends in the middle"):
        outermost_frames(python.runtime, tstate, 3)


@every_version
def test_a_walk_that_strays_into_another_stack(version: str) -> None:
    """Where two walks arrive at different first frames, neither is believed."""
    python = PythonInMemory(version)
    mine, other = (python.stack(_code(python, frame)) for frame in (_OUTER, _MIDDLE))
    left = python.frame(_code(python, _INNER), mine)
    tstate = _thread(python, left)
    stacks = [mine, other] * 3
    whole = python.read

    def read(address: int, size: int) -> bytes:
        if address == left:
            python.put_int(left + python.layout.frame_previous, stacks.pop())
        return whole(address, size)

    python.read = read  # type: ignore[method-assign]
    with pytest.raises(TornRead, match="a stack that begins at"):
        outermost_frames(python.runtime, tstate, 3)
    assert [] == stacks


@pytest.mark.parametrize("state", [0, 2])
def test_a_first_frame_that_unwinds(state: int) -> None:
    """In 3.10 a frame that raises is as much a first frame as one that runs."""
    python = PythonInMemory("3.10.13")
    frame = python.first_frame(_code(python, _OUTER))
    python.put_int(frame + python.layout.frame_root, state, 1)
    assert [_OUTER] == outermost_frames(python.runtime, _thread(python, frame), 1)


@every_version
def test_what_is_wanted_of_a_torn_stack_may_be_whole(version: str) -> None:
    """Only as much of a stack is read as was asked for."""
    python = PythonInMemory(version)
    code = _code(python, _INNER)
    tstate = _thread(python, python.frame(code, python.frame(code, 0x7E00_0000_0000)))
    assert [_INNER, _INNER] == _innermost(python, tstate, limit=2)
    with pytest.raises(TornRead, match=r"no \d+ bytes at 0x7e0000000000"):
        _innermost(python, tstate, limit=3)


@every_version
def test_what_is_no_code_object_has_no_name(version: str) -> None:
    """The type decides: memory that was freed and reused is not given a name."""
    python = PythonInMemory(version)
    code = _code(python, _INNER)
    python.put_int(code + python.layout.object_type, python.code_type + 16)
    with pytest.raises(TornRead, match=f"no code object at {code:#x}"):
        read_code(python.runtime, code)
    tstate = _thread(python, python.first_frame(code))
    with pytest.raises(TornRead, match=f"no code object at {code:#x}"):
        outermost_frames(python.runtime, tstate, 1)


@every_version
def test_a_frame_without_code_is_torn(version: str) -> None:
    """A frame that is being made has no code yet."""
    python = PythonInMemory(version)
    tstate = _thread(python, python.frame(0))
    with pytest.raises(TornRead, match="a frame without code"):
        _innermost(python, tstate)


@pytest.mark.parametrize("outermost", [True, False])
def test_a_stack_that_changes_is_read_again(*, outermost: bool) -> None:
    """One torn read is written off."""
    python = PythonInMemory()
    tstate = _thread(python, python.stack(_code(python, _INNER)))
    whole = python.read
    failures = [1, 1]

    def read(address: int, size: int) -> bytes:
        return whole(0, size) if failures and failures.pop() else whole(address, size)

    python.read = read  # type: ignore[method-assign]
    if outermost:
        assert [_INNER] == outermost_frames(python.runtime, tstate, 1)
    else:
        assert [_INNER] == _innermost(python, tstate)
    assert [] == failures


@every_version
@pytest.mark.parametrize(
    "name",
    ["", "plain", "größe", "\xff", "待機", "\uffff", "𠮷野家", "x" * 4096],
    ids=[
        "empty",
        "ascii",
        "latin",
        "latin-end",
        "two-bytes",
        "two-bytes-end",
        "four-bytes",
        "long",
    ],
)
def test_names(version: str, name: str) -> None:
    """Every width in which CPython stores characters is read."""
    python = PythonInMemory(version)
    code = python.code(name, f"/app/{name[:9]}.py", 7)
    assert Frame(name, f"/app/{name[:9]}.py", 7) == read_code(python.runtime, code)


def test_a_path_that_is_no_text_stays_printable() -> None:
    """Bytes that were no UTF-8 are shown as escapes, so that any output can carry them."""
    python = PythonInMemory()
    code = python.code("f", "/app/caf\udce9.py")
    assert read_code(python.runtime, code).file == "/app/caf\\udce9.py"


def test_an_endless_name_is_cut() -> None:
    """No more than 4096 characters of a name are kept."""
    python = PythonInMemory()
    assert "é" * 4096 == read_code(python.runtime, python.code("é" * 5000)).function


@every_version
@pytest.mark.parametrize(
    ("length", "state"),
    [(-1, 0x64), (1 << 21, 0x64), (4, 0x44), (4, 0x6C), (4, 0x60)],
    ids=["negative length", "huge length", "not compact", "kind 3", "kind 0"],
)
def test_what_is_no_str_has_no_text(version: str, length: int, state: int) -> None:
    """A header that no str has shows a torn read."""
    python = PythonInMemory(version)
    code = python.code("name")
    text = int.from_bytes(python.read(code + python.layout.code_name, 8), "little")
    python.put_int(text + python.layout.str_length, length)
    python.put_int(text + python.layout.str_state, state, 4)
    with pytest.raises(TornRead, match=re.escape(f"no str at {text:#x}")):
        read_code(python.runtime, code)


@pytest.mark.parametrize(
    ("name", "content"),
    [("name", b"\xe9"), ("𠮷野家", b"\xff\xff\xff\xff")],
    ids=["not ASCII", "beyond Unicode"],
)
def test_characters_that_cannot_be_are_torn(name: str, content: bytes) -> None:
    """Content that contradicts its header was changing."""
    python = PythonInMemory()
    code = python.code(name)
    text = int.from_bytes(python.read(code + python.layout.code_name, 8), "little")
    start = python.layout.str_ascii if name.isascii() else python.layout.str_wide
    python.put(text + start, content)
    with pytest.raises(TornRead, match=re.escape(f"no str at {text:#x}")):
        read_code(python.runtime, code)


@every_version
def test_code_that_goes_while_its_name_is_read(version: str) -> None:
    """
    A name that is half another's, which would be a thread's role for ever, is read again.
    """
    python = PythonInMemory(version)
    first, second = (_code(python, frame) for frame in (_OUTER, _INNER))
    layout, whole = python.layout, python.read
    name = int.from_bytes(whole(first + layout.code_name, 8), "little")

    def read(address: int, size: int) -> bytes:
        found = whole(address, size)
        if address == name:
            python.put(first, whole(second, 256))
        return found

    python.read = read  # type: ignore[method-assign]

    with pytest.raises(TornRead, match="went while it was read"):
        read_code(python.runtime, first)
    assert _INNER == read_code(python.runtime, first)
