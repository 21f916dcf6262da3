"""Tells versions and implementations apart by what their files export."""

import re
import struct

import pytest

from gilscope.arch.aarch64.architecture import AARCH64
from gilscope.arch.base import Architecture
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.image import Section
from gilscope.errors import GilCodeNotFound, GilscopeError, NotPython, UnsupportedPython
from gilscope.runtimes.cpython.detect import Interpreter, identify
from support.gil.recorded_offsets import RECORDED_OFFSETS

_CODE_TYPE = 0x2000
_RUNTIME = 0x4000
_VERSION = 0x8000

_PY_37 = ("PyEval_RestoreThread", "PyContextVar_New")
_PY_38 = (*_PY_37, "PyConfig_InitPythonConfig")
_PY_39 = (*_PY_38, "PyThreadState_GetFrame")
_PY_310 = (*_PY_39, "Py_NewRef")


class _Image:
    """An ELF file with these dynamic symbols and this content."""

    architecture: Architecture = X86_64

    def __init__(
        self,
        *functions: str,
        packed_version: int | None = None,
        strings: bytes | None = None,
        words: tuple[int, ...] = (),
        lacks: str = "",
    ) -> None:
        self._symbols = dict.fromkeys(functions, 0x1000)
        self._symbols |= {"_PyRuntime": _RUNTIME, "PyCode_Type": _CODE_TYPE}
        self._symbols.pop(lacks, None)
        self._strings = strings
        self._content = {_RUNTIME: struct.pack(f"<{len(words)}Q", *words)}
        if packed_version is not None:
            self._symbols["Py_Version"] = _VERSION
            self._content[_VERSION] = struct.pack("<Q", packed_version)

    def default_version_symbol(self, name: str) -> int | None:
        return self._symbols.get(name)

    def read(self, vaddr: int, size: int) -> bytes:
        return self._content[vaddr][:size]

    def section(self, name: str) -> Section | None:
        if name != ".rodata" or self._strings is None:
            return None
        return Section(name, 1, 2, 0x9000, 0x9000, len(self._strings), 0)

    def section_bytes(self, section: Section) -> bytes:
        assert self._strings is not None
        return self._strings[: section.size]


def _modern(packed_version: int, **content: object) -> _Image:
    return _Image(*_PY_310, packed_version=packed_version, **content)  # type: ignore[arg-type]


def test_py_version_states_the_version() -> None:
    """From 3.11 on the exported number is the version, and nothing else is consulted."""
    image = _modern(0x030B02F0, strings=b"\x003.11.99\0")
    expected = Interpreter((3, 11), "3.11.2", _RUNTIME, _CODE_TYPE, None)
    assert expected == identify(image)


def test_a_release_candidate_is_named_as_one() -> None:
    """The structures are final in a release candidate, so it is accepted under its own name."""
    assert identify(_modern(0x030C00C3)).version == "3.12.0rc3"


@pytest.mark.parametrize(
    ("functions", "minor"),
    [(_PY_37, (3, 7)), (_PY_38, (3, 8)), (_PY_39, (3, 9)), (_PY_310, (3, 10))],
)
def test_before_3_11_the_newest_function_decides(
    functions: tuple[str, ...], minor: tuple[int, int]
) -> None:
    """A version is told by the functions that it was the first to export."""
    assert minor == identify(_Image(*functions)).minor


@pytest.mark.parametrize(
    ("strings", "version"),
    [
        (b"\0000.5\x003.9.18\0", "3.9.18"),
        (b"\x003.9.18+\0", "3.9.18+"),
        (b"\x003.9.0rc2\0", "3.9.0rc2"),
        (b"\x003.40.1\x003.9.18\0", "3.9.18"),
        (b"\x003.9.18\0/opt/python-3.9.2\0", "3.9.18"),
        (b"\0/opt/versions/3.9.18\0", "3.9.18"),
        (b"\0/opt/versions/3.9.18/lib\0", "3.9"),
        (b"\x0013.9.18\0", "3.9"),
        (b"\x002.3.9.18\0", "3.9"),
        (b"\x003.9.1\x003.9.2\0", "3.9"),
        (b"", "3.9"),
        (None, "3.9"),
    ],
    ids=[
        "whole string",
        "between releases",
        "release candidate",
        "another library's version",
        "whole string before a path",
        "tail of the prefix",
        "inside a path",
        "longer number",
        "longer version",
        "two candidates",
        "nothing",
        "no section",
    ],
)
def test_before_3_11_the_micro_version_comes_from_the_strings(
    strings: bytes | None, version: str
) -> None:
    """The micro version is the one string that settles it, or is left out."""
    assert version == identify(_Image(*_PY_39, strings=strings)).version


@pytest.mark.parametrize("version", RECORDED_OFFSETS)
def test_from_3_13_on_the_debug_offsets_come_along(version: str) -> None:
    """The table at the start of the runtime is handed on as it stands in the file."""
    words = RECORDED_OFFSETS[version]
    found = identify(_modern(words[1], words=words))
    assert (version, words) == (found.version, found.debug_offsets)


@pytest.mark.parametrize(
    ("image", "situation", "words"),
    [
        (_Image(), NotPython, "does not define PyEval_RestoreThread"),
        (_Image("pypy_main_startup"), NotPython, "PyPy (it exports pypy_main_startup)"),
        (_Image("rpython_startup_code"), NotPython, "PyPy"),
        (_Image("PyEval_RestoreThread", "PyString_FromString"), NotPython, "CPython 2 "),
        (_Image("PyEval_RestoreThread"), UnsupportedPython, "CPython 3.5 or older"),
        (_modern(0x031000F0), UnsupportedPython, "CPython 3.16.0, newer"),
        (_modern(0x040000F0), UnsupportedPython, "CPython 4.0.0, newer"),
        (_modern(0x030B00A7), UnsupportedPython, "CPython 3.11.0a7, a preview"),
        (_modern(0x030C00B1), UnsupportedPython, "CPython 3.12.0b1, a preview"),
        (_Image(*_PY_39, lacks="_PyRuntime"), GilCodeNotFound, "does not export _PyRuntime"),
        (_Image(*_PY_39, lacks="PyCode_Type"), GilCodeNotFound, "does not export PyCode_Type"),
    ],
)
def test_what_is_refused(image: _Image, situation: type[GilscopeError], words: str) -> None:
    """Every file that cannot be traced is refused with the situation and the fact."""
    with pytest.raises(situation, match=re.escape(words)):
        identify(image)


@pytest.mark.parametrize(
    ("position", "value"), [(0, 0), (1, 0x030D06F0)], ids=["cookie", "version"]
)
def test_debug_offsets_of_something_else_are_refused(position: int, value: int) -> None:
    """Without the cookie and the very version the table is not believed."""
    words = list(RECORDED_OFFSETS["3.13.5"])
    words[position] = value
    with pytest.raises(GilCodeNotFound, match=re.escape("debug offsets of CPython 3.13.5")):
        identify(_modern(0x030D05F0, words=tuple(words)))


@pytest.mark.parametrize("version", ["3.13.5", "3.14.10", "3.15.2"])
def test_a_build_that_always_has_a_gil_is_told_from_a_free_threaded_one(version: str) -> None:
    """The table says which it is; whether the latter uses its GIL, memory alone tells."""
    words = list(RECORDED_OFFSETS[version])
    identified = []
    for is_free_threaded in (0, 1):
        words[2] = is_free_threaded
        identified.append(identify(_modern(words[1], words=tuple(words))))

    assert [False, True] == [each.is_free_threaded for each in identified]
    assert [version, f"{version}t"] == [each.version for each in identified]


def test_types_of_threads_are_those_of_the_processor() -> None:
    """
    Glibc's mutex is larger on aarch64.
    """
    image = _Image(*_PY_39, strings=b"\x003.9.2\0")
    image.architecture = AARCH64

    assert [48, 40] == [identify(each).pthread.mutex_size for each in (image, _Image(*_PY_39))]
