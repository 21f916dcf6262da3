"""Which modules need the GIL of a Python that could do without: what is read, how much of it."""

import pytest

from gilscope.process.remote_read import TornRead, read_pointer
from gilscope.runtimes.cpython.code import modules as module
from gilscope.runtimes.cpython.code.modules import modules_that_need_gil
from support.gil.python_in_memory import PythonInMemory

_VERSIONS = ("3.13.12t", "3.14.9t", "3.15.1t")
_SOME = (
    ("json", False, True),
    ("_json", True, False),
    ("first", True, True),
    ("päckchen.second", True, True),
)


@pytest.mark.parametrize("has_hashes", [False, True])
@pytest.mark.parametrize("version", _VERSIONS)
def test_modules_of_c_code_that_say_nothing_need_it(version: str, *, has_hashes: bool) -> None:
    """
    In the order of their import; one made of Python code has no say.
    """
    python = PythonInMemory(version)
    python.modules(python.interpreter(0), _SOME, has_hashes=has_hashes)

    assert ("first", "päckchen.second") == modules_that_need_gil(python.runtime)


def test_those_of_all_interpreters_are_read() -> None:
    """
    The newest first; one that has not begun yet has none.
    """
    python = PythonInMemory("3.14.9t")
    older = python.interpreter(0)
    newer = python.interpreter(1, older)
    python.interpreter(2, newer)
    python.modules(older, [("of older", True, True)])
    python.modules(newer, [("of newer", True, True)])

    assert ("of newer", "of older") == modules_that_need_gil(python.runtime)


@pytest.mark.parametrize("version", ["3.8.18", "3.14.10"])
def test_a_build_with_a_gil_for_good_has_none(version: str) -> None:
    """
    Nothing is read of it.
    """
    assert () == modules_that_need_gil(PythonInMemory(version).runtime)


def test_what_is_no_dict_is_said_to_be_torn() -> None:
    """
    A count of entries that no dict of modules has.
    """
    python = PythonInMemory("3.14.9t")
    interpreter = python.interpreter(0)
    python.modules(interpreter, _SOME)
    form = python.layout.modules
    assert form is not None
    dict_ = read_pointer(python, interpreter + form.in_interpreter)
    python.put_int(read_pointer(python, dict_ + form.dict_keys) + 24, 1 << 40)

    with pytest.raises(TornRead, match="1099511627776 entries"):
        modules_that_need_gil(python.runtime)


def test_only_so_many_are_read_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whatever a process tells; of the first three entries one was taken out.
    """
    python = PythonInMemory("3.14.9t")
    python.modules(python.interpreter(0), [(f"m{number}", True, True) for number in range(9)])
    monkeypatch.setattr(module, "_MOST_NAMED", 3)
    named = modules_that_need_gil(python.runtime)
    monkeypatch.setattr(module, "_MOST_MODULES", 3)
    read = modules_that_need_gil(python.runtime)

    assert ("m0", "m1", "m2") == named
    assert ("m0", "m1") == read
