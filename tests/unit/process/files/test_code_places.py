"""Functions of C code at addresses of this very process."""

import ctypes
import os

import pytest

from gilscope.elf.image import ElfImage, Symbol
from gilscope.process.files import code_places
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.code_places import CodePlace, CodePlaces


def _address(function: str) -> int:
    found = ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value
    assert found is not None
    return found


def test_a_function_that_is_exported() -> None:
    """
    By its name and the file that it is in; also in the middle of it.
    """
    places = CodePlaces(os.getpid(), CodeMappings(os.getpid()))
    address = _address("getenv")
    place = places.place(address)

    assert place is not None
    assert place.module.startswith("libc")
    assert "getenv" == place.function
    assert CodePlace(place.module, "getenv") == places.place(address + 1)


def test_what_is_no_code_of_a_file() -> None:
    """
    Neither data nor memory that nothing is mapped in.
    """
    held = ctypes.create_string_buffer(8)
    places = CodePlaces(os.getpid(), CodeMappings(os.getpid()))

    assert [None, None] == [places.place(ctypes.addressof(held)), places.place(0)]


def test_symbols_are_searched_for_once_for_each_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    And not without end in one file: it may have a million of them.
    """
    searched = []
    search = ElfImage.function_at

    def function_at(image: ElfImage, vaddr: int) -> Symbol | None:
        searched.append(vaddr)
        return search(image, vaddr)

    monkeypatch.setattr(ElfImage, "function_at", function_at)
    monkeypatch.setattr(code_places, "_MOST_SEARCHES", 2)
    places = CodePlaces(os.getpid(), CodeMappings(os.getpid()))
    address = _address("getenv")
    found = [places.place(address + offset) for offset in range(3)]
    others = [places.place(_address(name)) for name in ("qsort", "strtol")]

    assert {"getenv"} == {place.function for place in found if place is not None}
    assert 2 == len(searched)
    assert ["qsort", ""] == [place.function for place in others if place is not None]


def test_a_function_of_cxx_is_told_as_its_author_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without the types that are in its symbol.
    """
    symbol = Symbol("_ZN2at6native3addERKNS_6TensorE", 0, 1, is_function=True)
    monkeypatch.setattr(ElfImage, "function_at", lambda _image, _vaddr: symbol)
    place = CodePlaces(os.getpid(), CodeMappings(os.getpid())).place(_address("getenv"))

    assert place is not None
    assert "at::native::add" == place.function
