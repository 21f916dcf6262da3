"""Tells a CPython 2.7 by what its file exports, and finds its lock in two functions that agree."""

import struct

import pytest

from gilscope.arch.base import Architecture
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.image import Section
from gilscope.errors import GilCodeNotFound, GilscopeError, NotPython, UnsupportedPython
from gilscope.runtimes.cpython27.detect import Interpreter27, identify

_LOCK, _HEAD = 0x20_0000, 0x20_0010
_ACQUIRE, _RELEASE, _FIRST = 0x1000, 0x1100, 0x1200
_DATA = {"_PyThreadState_Current": 0x20_0020, "_Py_CheckInterval": 0x20_0030, "PyCode_Type": 0x9000}
_FUNCTIONS = {
    "PyEval_AcquireLock": _ACQUIRE,
    "PyEval_ReleaseLock": _RELEASE,
    "PyInterpreterState_Head": _FIRST,
}
_MARKERS = {"PyString_FromString": 0x3000, "PyCapsule_New": 0x3100}
_NO_LOAD = b"\x31\xc0\xc3"


def _load(function: int, pointer: int, opcode: bytes = b"\x48\x8b\x3d") -> bytes:
    """Return what loads the word at *pointer* behind an endbr64, then returns."""
    behind = function + 4 + len(opcode) + 4
    return b"\xf3\x0f\x1e\xfa" + opcode + struct.pack("<i", pointer - behind) + b"\xc3"


class _Image:
    """A file with these symbols and this code."""

    architecture: Architecture = X86_64

    def __init__(
        self,
        *lacks: str,
        has: str = "",
        released: int = _LOCK,
        code: bytes = b"",
        strings: bytes = b"\x002.7.18\0",
    ) -> None:
        symbols = {**_MARKERS, **_DATA, **_FUNCTIONS, **({has: 0x4000} if has else {})}
        self._symbols = {name: at for name, at in symbols.items() if name not in lacks}
        self._code = {
            _ACQUIRE: code or _load(_ACQUIRE, _LOCK),
            _RELEASE: _load(_RELEASE, released),
            _FIRST: _load(_FIRST, _HEAD, b"\x48\x8b\x05"),
        }
        self._strings = strings

    def default_version_symbol(self, name: str) -> int | None:
        return self._symbols.get(name)

    def read(self, vaddr: int, size: int) -> bytes:
        return self._code[vaddr].ljust(size, b"\xcc")

    def section(self, name: str) -> Section | None:
        return Section(name, 1, 2, 0x9000, 0x9000, len(self._strings), 0)

    def section_bytes(self, section: Section) -> bytes:
        return self._strings[: section.size]


def test_the_lock_is_what_both_functions_load() -> None:
    """
    Addresses come from exports, and from what three exported functions begin with.
    """
    assert identify(_Image()) == Interpreter27(
        version="2.7.18",
        lock_pointer=_LOCK,
        current=0x20_0020,
        check_interval=0x20_0030,
        interpreters_head=_HEAD,
        code_type=0x9000,
    )


@pytest.mark.parametrize(
    ("strings", "version"),
    [
        (b"\x002.7.18\0", "2.7.18"),
        (b"\x002.7.9+\0", "2.7.9+"),
        (b"/opt/python-2.7.3\0", "2.7.3"),
        (b"\x002.7.3\x002.7.4\0", "2.7"),
        (b"nothing", "2.7"),
    ],
)
def test_the_version_is_a_string_or_the_end_of_one(strings: bytes, version: str) -> None:
    """
    Where several come into question, none is chosen.
    """
    assert identify(_Image(strings=strings)).version == version


@pytest.mark.parametrize(
    ("image", "kind", "words"),
    [
        (_Image("PyString_FromString"), NotPython, "no CPython 2"),
        (_Image("PyCapsule_New"), UnsupportedPython, "CPython 2.6 or older"),
        (_Image(has="_Py_RefTotal"), UnsupportedPython, "a debug build of CPython 2.7"),
        (_Image("PyEval_ReleaseLock"), GilCodeNotFound, "does not export PyEval_ReleaseLock"),
        (_Image("_PyThreadState_Current"), GilCodeNotFound, "does not export _PyThreadState_"),
        (
            _Image(released=_LOCK + 8),
            GilCodeNotFound,
            "PyEval_AcquireLock acquires a lock at 0x200000 and PyEval_ReleaseLock .* at 0x200008",
        ),
        (
            _Image(code=_NO_LOAD),
            GilCodeNotFound,
            "PyEval_AcquireLock does not begin by loading a static pointer",
        ),
    ],
)
def test_what_does_not_agree_is_refused(
    image: _Image, kind: type[GilscopeError], words: str
) -> None:
    """
    Each refusal names its reason.
    """
    with pytest.raises(kind, match=words):
        identify(image)
