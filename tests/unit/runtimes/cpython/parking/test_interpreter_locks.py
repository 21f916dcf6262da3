"""Where the interpreter's own locks lie, in real interpreters without symbols."""

import re

import pytest

from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.runtimes.cpython.parking import interpreter_locks
from gilscope.runtimes.cpython.parking.interpreter_locks import (
    InterpreterLocks,
    find_interpreter_locks,
)
from support.interpreters.known import (
    FREE_THREADED,
    MUSL_FREE_THREADED,
    Interpreter,
    found_or_skipped,
)

_PLACES = {
    "3.13.12": InterpreterLocks(types=196152, weak_references=17304),
    "3.13.5": InterpreterLocks(types=196152, weak_references=17304),
    "3.14.9": InterpreterLocks(types=196456, weak_references=17464, interned_strings=230744),
    "3.15.1": InterpreterLocks(types=196552, weak_references=17400, interned_strings=230944),
}
"""Where running threads wait for them. In 3.13 interned strings are in a dict with its own lock."""


def _of(image: ElfImage) -> InterpreterLocks:
    table = read_frame_table(image)
    return find_interpreter_locks(image, table, InstructionStarts(image, table))


def _elf(name: str) -> bytes:
    return found_or_skipped(name).elf.read_bytes()


@pytest.mark.parametrize("interpreter", [*FREE_THREADED, *MUSL_FREE_THREADED])
def test_each_release_has_its_own_places(interpreter: Interpreter) -> None:
    """
    Two compilers and optimisation over all files at once give the same.
    """
    version = ".".join(map(str, interpreter.version))

    assert _PLACES[version] == _of(ElfImage(interpreter.elf.read_bytes()))


def test_a_build_with_a_gil_has_none() -> None:
    """
    What the GIL guards needs no lock.
    """
    assert InterpreterLocks() == _of(ElfImage(_elf("debian-3.14")))


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (196456, InterpreterLocks(0, 17464, 230744)),
        (17464, InterpreterLocks(196456, 0, 230744)),
    ],
)
def test_a_place_that_only_one_function_knows_is_not_certain(
    place: int, left: InterpreterLocks
) -> None:
    """
    Whichever it is. The other names are what they were.
    """
    whole = _elf("free-threaded-3.14")
    nowhere = whole.replace(_number(place), bytes(4))
    places = [match.start() for match in re.finditer(re.escape(_number(place)), whole)]
    assert len(places) > 1

    for kept in places:
        changed = nowhere[:kept] + _number(place) + nowhere[kept + 4 :]
        assert left == _of(ElfImage(changed))


def test_an_instruction_that_exchanges_nothing_takes_no_lock() -> None:
    """
    In one of two functions: the other names are what they were.
    """
    whole = _elf("free-threaded-3.14")
    image = ElfImage(whole)
    function = image.dynamic_symbols["PyType_Watch"]
    begin = image.file_offset(function.vaddr)
    code = whole[begin : begin + function.size]
    changed = code.replace(b"\xf0\x0f\xb0", b"\xf0\x0f\xb1")
    assert changed != code

    locks = _of(ElfImage(whole[:begin] + changed + whole[begin + function.size :]))

    assert InterpreterLocks(0, 17464, 230744) == locks


def test_two_locks_in_one_place_are_none() -> None:
    """
    What is said of strings is the place of a lock for weak references then.
    """
    whole = _elf("free-threaded-3.14")
    assert 1 <= whole.count(_number(230744)) <= 8

    changed = whole.replace(_number(230744), _number(17464 + 8))

    assert InterpreterLocks() == _of(ElfImage(changed))


def test_a_function_that_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nor is anything known by what it calls.
    """
    monkeypatch.setattr(interpreter_locks, "_LARGEST_FUNCTION", 16)

    assert InterpreterLocks() == _of(ElfImage(_elf("free-threaded-3.14")))


def _number(place: int) -> bytes:
    return place.to_bytes(4, "little")
