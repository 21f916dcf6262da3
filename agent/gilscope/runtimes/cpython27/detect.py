"""Tells from an ELF file whether it holds a CPython 2.7, and where its lock is, without running it.

The lock is a pointer in static memory that no symbol names in a stripped file. Two functions of the
public C API do nothing but acquire and release it, and both begin by loading it.
"""

import re

from gilscope.errors import GilCodeNotFound, NotPython, UnsupportedPython
from gilscope.runtimes.cpython.detect import SymbolSource
from gilscope.values import dataclass

__all__ = ["Interpreter27", "identify"]

_MARKER = "PyString_FromString"
"""Of the C API of CPython 2 alone; PyPy's functions have other names."""
_SINCE_2_7 = "PyCapsule_New"
_DEBUG_BUILD = "_Py_RefTotal"
"""A build with this has larger objects."""
_READ = 32
"""Bytes of a function in which it loads what it is about."""


@dataclass(frozen=True, slots=True)
class Interpreter27:
    """One CPython 2.7, as its file describes it. Addresses are virtual, before any load bias."""

    version: str
    """``2.7.18``, or ``2.7`` where the file does not tell the rest."""
    lock_pointer: int
    """Of `interpreter_lock`: the pointer to the semaphore, NULL before the first thread."""
    current: int
    """Of `_PyThreadState_Current`: the pointer to the thread state that holds the lock."""
    check_interval: int
    """Of `_Py_CheckInterval`, an int."""
    interpreters_head: int
    """Of `interp_head`: the pointer to the newest interpreter."""
    code_type: int
    """Of `PyCode_Type`."""


def identify(image: SymbolSource) -> Interpreter27:
    """Return the CPython 2.7 that *image* defines.

    Raises NotPython if it defines none, UnsupportedPython for another CPython 2 and a debug build,
    and GilCodeNotFound if the lock cannot be told for certain. A damaged file raises ElfError.
    """
    if image.default_version_symbol(_MARKER) is None:
        raise NotPython(f"no CPython 2: the file does not define {_MARKER}")
    if image.default_version_symbol(_SINCE_2_7) is None:
        raise UnsupportedPython("this is CPython 2.6 or older; of CPython 2 only 2.7 is known")
    if image.default_version_symbol(_DEBUG_BUILD) is not None:
        raise UnsupportedPython("this is a debug build of CPython 2.7, whose objects are larger")
    acquired = _loaded_by(image, "PyEval_AcquireLock")
    released = _loaded_by(image, "PyEval_ReleaseLock")
    if acquired != released:
        raise GilCodeNotFound(
            f"this is CPython 2.7, but PyEval_AcquireLock acquires a lock at {acquired:#x} and "
            f"PyEval_ReleaseLock releases one at {released:#x}"
        )
    return Interpreter27(
        version=_version(image),
        lock_pointer=acquired,
        current=_exported(image, "_PyThreadState_Current"),
        check_interval=_exported(image, "_Py_CheckInterval"),
        interpreters_head=_loaded_by(image, "PyInterpreterState_Head"),
        code_type=_exported(image, "PyCode_Type"),
    )


def _exported(image: SymbolSource, name: str) -> int:
    address = image.default_version_symbol(name)
    if address is None:
        raise GilCodeNotFound(f"this is CPython 2.7, but the file does not export {name}")
    return address


def _loaded_by(image: SymbolSource, function: str) -> int:
    """Return the address of the static pointer that an exported function begins by loading."""
    address = _exported(image, function)
    loaded = image.architecture.static_load(image.read(address, _READ), address)
    if loaded is None:
        raise GilCodeNotFound(
            f"this is CPython 2.7, but {function} does not begin by loading a static pointer"
        )
    return loaded


def _version(image: SymbolSource) -> str:
    section = image.section(".rodata")
    strings = image.section_bytes(section) if section else b""
    # A linker may store it as the tail of a longer string, such as the installation prefix.
    for before in (rb"(?<=\0)", rb"(?<![0-9.])"):
        found = set(re.findall(before + rb"2\.7\.\d{1,2}\+?(?=\0)", strings))
        if len(found) == 1:
            return bytes(found.pop()).decode("ascii")
    return "2.7"
