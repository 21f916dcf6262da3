"""Functions of C code at addresses of this very process."""

import ctypes
import os

from gilscope.process.files.code_places import CodePlace, CodePlaces


def _address(function: str) -> int:
    found = ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value
    assert found is not None
    return found


def test_a_function_that_is_exported() -> None:
    """
    By its name and the file that it is in; also in the middle of it.
    """
    places = CodePlaces(os.getpid())
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
    places = CodePlaces(os.getpid())

    assert [None, None] == [places.place(ctypes.addressof(held)), places.place(0)]
