"""Names of code in a PyPy's memory, by their numbers."""

import os

import pytest

from gilscope.model.stack import Frame
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.pypy.code_objects import CodeObjects, read_bytes_of, read_string
from support.gil.pypy_in_memory import PyPyInMemory

_CRUNCH = Frame("crunch", "/srv/app.py", 10)


@pytest.fixture
def pypy() -> PyPyInMemory:
    """Return a PyPy that is loaded somewhere above the addresses of its file."""
    return PyPyInMemory(os.getpid(), bias=0x10_0000)


def _objects(pypy: PyPyInMemory) -> CodeObjects:
    return CodeObjects(pypy.memory, pypy.place)


def test_strings_have_their_length_before_them(pypy: PyPyInMemory) -> None:
    """
    Names are UTF-8; what is not is marked as such.
    """
    assert "Bäcker" == read_string(pypy.memory, pypy.text("Bäcker"))
    assert "" == read_string(pypy.memory, pypy.text(""))
    assert "a\N{REPLACEMENT CHARACTER}b" == read_string(pypy.memory, pypy.text(b"a\xffb"))


@pytest.mark.parametrize("length", [4097, 1 << 63, -1])
def test_a_name_that_is_too_long_is_none(pypy: PyPyInMemory, length: int) -> None:
    """
    Not so many bytes are fetched to find that out.
    """
    name = pypy.text("crunch")
    pypy.memory.put_int(name + 16, length)

    with pytest.raises(TornRead, match="a string of"):
        read_string(pypy.memory, name)


@pytest.mark.parametrize("address", [0, 0x1000])
def test_a_string_where_nothing_is_mapped_is_torn(pypy: PyPyInMemory, address: int) -> None:
    """
    A pointer that was being written.
    """
    with pytest.raises(TornRead, match="no 8 bytes"):
        read_bytes_of(pypy.memory, address)


def test_code_is_found_by_its_number(pypy: PyPyInMemory) -> None:
    """
    In the list that PyPy has of all code; what comes later is found as well.
    """
    objects = _objects(pypy)
    pypy.code(44, "crunch", line=10)
    assert _CRUNCH == objects.frame(44)
    assert objects.frame(48) is None

    pypy.code(48, "late", line=20)

    assert Frame("late", "/srv/app.py", 20) == objects.frame(48)
    assert _CRUNCH == objects.frame(44)


def test_a_number_that_is_no_codes_is_not_searched_for_ever(
    pypy: PyPyInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Through a list that has not changed it looks less and less often: code may be moved meanwhile.
    """
    gone = pypy.code(44, "crunch", line=10)
    objects = _objects(pypy)
    kind = pypy.memory.read(gone, 4)
    pypy.memory.put_int(gone, 0x120)
    reads: list[int] = []
    read = pypy.memory.read

    def counted(address: int, size: int) -> bytes:
        reads.append(address)
        return read(address, size)

    monkeypatch.setattr(pypy.memory, "read", counted)
    for _ in range(1000):
        assert objects.frame(44) is None

    assert 3 < reads.count(gone) < 20

    pypy.memory.put_int(gone, int.from_bytes(kind, "little"))
    found = [objects.frame(44) for _ in range(300)]
    assert _CRUNCH == found[-1]


def test_a_qualified_name_comes_first(pypy: PyPyInMemory) -> None:
    """
    Since Python 3.11 code has one.
    """
    code = pypy.code(44, "crunch", line=10)
    pypy.memory.put_int(code + 80, pypy.text("Job.crunch"))
    pypy.place.facts.numbers["code.qualified_name"] = 80  # type: ignore[index]

    assert Frame("Job.crunch", "/srv/app.py", 10) == _objects(pypy).frame(44)


@pytest.mark.parametrize(("instruction", "line"), [(0, 10), (5, 10), (6, 11), (18, 14)])
def test_lines_of_instructions(pypy: PyPyInMemory, instruction: int, line: int) -> None:
    """
    By co_lnotab: six bytes later one line further, twelve later three.
    """
    pypy.code(44, "crunch", line=10, lines=bytes([6, 1, 12, 3]))
    objects = _objects(pypy)
    assert _CRUNCH == objects.frame(44)

    assert Frame("crunch", "/srv/app.py", 10, line=line) == objects.at_line(44, instruction)


def test_code_that_has_moved_has_no_line(pypy: PyPyInMemory) -> None:
    """
    The garbage collector moves it; where it was is other code now, whose lines are not told.
    """
    code = pypy.code(44, "crunch", line=10, lines=bytes([6, 1]))
    objects = _objects(pypy)
    assert _CRUNCH == objects.frame(44)
    pypy.memory.put_int(code + pypy.facts["code.number"], 52)

    assert objects.at_line(44, 0) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("code.number", 0), ("type", 0x120), ("code.name", 0x1000), ("code.first_line", 1 << 31)],
)
def test_what_is_no_code_has_no_lines(pypy: PyPyInMemory, field: str, value: int) -> None:
    """
    Other numbers and types, a name that is not there, a line that no file has.
    """
    code = pypy.code(44, "crunch", line=10, lines=bytes([6, 1]))
    objects = _objects(pypy)
    assert _CRUNCH == objects.frame(44)
    pypy.memory.put_int(code + (0 if field == "type" else pypy.facts[field]), value)

    assert objects.at_line(44, 0) is None


def test_code_that_has_gone_is_left_out(pypy: PyPyInMemory) -> None:
    """
    Its reference is empty, or leads to another object; the rest of the list is read.
    """
    gone, other = pypy.code(44, "gone"), pypy.code(48, "other")
    pypy.code(52, "crunch", line=10)
    assert gone < other
    codes = pypy.memory.read(pypy.data + 0x208 + 16, 8)
    first = int.from_bytes(pypy.memory.read(int.from_bytes(codes, "little") + 16, 8), "little")
    pypy.memory.put_int(first + 8, 0)
    pypy.memory.put_int(other, 0x120)
    objects = _objects(pypy)

    assert [None, None, _CRUNCH] == [objects.frame(number) for number in (44, 48, 52)]


@pytest.mark.parametrize("length", [0, 3, 63, 1 << 21])
def test_what_is_no_list_of_code_is_not_taken_for_one(pypy: PyPyInMemory, length: int) -> None:
    """
    It has room for a power of two of references.
    """
    pypy.code(44, "crunch", line=10)
    codes = int.from_bytes(pypy.memory.read(pypy.data + 0x208 + 16, 8), "little")
    pypy.memory.put_int(codes + 8, length)

    assert _objects(pypy).frame(44) is None


def test_a_list_that_grows_beyond_all_code_is_not_read(pypy: PyPyInMemory) -> None:
    """
    What was read before stays known.
    """
    pypy.code(44, "crunch", line=10)
    objects = _objects(pypy)
    assert _CRUNCH == objects.frame(44)
    codes = int.from_bytes(pypy.memory.read(pypy.data + 0x208 + 16, 8), "little")
    pypy.memory.put_int(codes + 8, 1 << 40)

    assert objects.frame(48) is None
    assert _CRUNCH == objects.frame(44)
