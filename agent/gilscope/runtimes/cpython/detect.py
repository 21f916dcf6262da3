"""Tells from an ELF file which CPython it holds, without running it."""

import re
import struct
from typing import Protocol, cast

from gilscope.arch.base import Architecture, PthreadLayout
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.image import ElfImage, Section
from gilscope.errors import GilCodeNotFound, NotPython, UnsupportedPython
from gilscope.runtimes.cpython.debug_offsets import COOKIE, WORDS_NEEDED
from gilscope.runtimes.cpython.sites.static_lock import StaticLock, find_static_lock
from gilscope.values import dataclass

__all__ = ["Interpreter", "SymbolSource", "identify"]

_OLDEST = (3, 6)
_FIRST_WITH_RUNTIME = (3, 7)
_NEWEST = (3, 15)
_FREE_THREADED = 2
"""Which word of `_Py_DebugOffsets` is not 0 in a build that can do without a GIL."""
_KNOWN = "{}.{} to {}.{}".format(*_OLDEST, *_NEWEST)

# Functions of the public C API by the version that added them (each page of the C API manual says
# "New in version"). All of them stay in .dynsym when a file is stripped. Newest first.
_MARKERS_BEFORE_PY_VERSION = (
    ((3, 10), "Py_NewRef"),
    ((3, 9), "PyThreadState_GetFrame"),
    ((3, 8), "PyConfig_InitPythonConfig"),
    ((3, 7), "PyContextVar_New"),
    ((3, 6), "PyOS_FSPath"),
)
_PYPY_MARKERS = ("pypy_main_startup", "rpython_startup_code", "PyPyEval_RestoreThread")
_RELEASE_LEVELS = {0xA: "a", 0xB: "b", 0xC: "rc"}


class SymbolSource(Protocol):
    """What has to be known of an ELF file; `gilscope.elf.image.ElfImage` provides it."""

    @property
    def architecture(self) -> Architecture:
        """The processor that its code is for; raises ElfError where that is not known."""

    def default_version_symbol(self, name: str) -> int | None:
        """Return the virtual address of a dynamic symbol that the file defines, or None."""

    def read(self, vaddr: int, size: int) -> bytes:
        """Return bytes of the file as they are loaded at *vaddr*."""

    def section(self, name: str) -> Section | None:
        """Return the section of that name, or None."""

    def section_bytes(self, section: Section) -> bytes | memoryview:
        """Return what the section holds."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One CPython, as its file describes it."""

    minor: tuple[int, int]
    version: str
    """As `sys.version` begins: ``3.11.2``; ``3.9`` where the file does not tell the rest, and
    ``3.14.2t`` where it was built to do without a GIL."""
    runtime_vaddr: int
    """Virtual address of `_PyRuntime`, before any load bias; before CPython 3.7, which has none,
    of the pointer to the newest interpreter."""
    code_type_vaddr: int
    """Virtual address of `PyCode_Type`, the type of every code object."""
    debug_offsets: tuple[int, ...] | None
    """Leading 64-bit words of `_Py_DebugOffsets`; None before CPython 3.13."""
    static_lock: StaticLock | None = None
    """Where the parts of the lock are before CPython 3.7; None from then on."""
    pthread: PthreadLayout = X86_64.pthread
    """The types of threads of its processor."""

    @property
    def is_free_threaded(self) -> bool:
        """Whether it was built to do without a GIL; it may have one all the same."""
        return self.debug_offsets is not None and bool(self.debug_offsets[_FREE_THREADED])


def identify(image: SymbolSource) -> Interpreter:
    """Return the CPython that *image* defines.

    Raises NotPython if it defines none (also for an executable that only links to libpython),
    UnsupportedPython for one whose lock is not known, and GilCodeNotFound if the file lacks a
    symbol that every CPython exports. A damaged file raises ElfError.
    """
    _refuse_other_implementations(image)
    minor, version = _version_of(image)
    _refuse_unknown_minor(minor, version)
    code_type_vaddr = _required(image, "PyCode_Type", version)
    if minor < _FIRST_WITH_RUNTIME:
        lock = find_static_lock(cast("ElfImage", image))
        return Interpreter(minor, version, lock.interpreters, code_type_vaddr, None, lock)
    runtime_vaddr = _required(image, "_PyRuntime", version)
    words = _debug_offsets(image, runtime_vaddr, version) if minor >= (3, 13) else None
    return Interpreter(
        minor=minor,
        version=f"{version}t" if words is not None and words[_FREE_THREADED] else version,
        runtime_vaddr=runtime_vaddr,
        code_type_vaddr=code_type_vaddr,
        debug_offsets=words,
        pthread=image.architecture.pthread,
    )


def _refuse_other_implementations(image: SymbolSource) -> None:
    for name in _PYPY_MARKERS:
        if image.default_version_symbol(name) is not None:
            raise NotPython(f"this is PyPy (it exports {name}), not CPython")
    if image.default_version_symbol("PyEval_RestoreThread") is None:
        raise NotPython("no Python interpreter: the file does not define PyEval_RestoreThread")
    if image.default_version_symbol("PyString_FromString") is not None:
        raise NotPython("this is CPython 2 (it exports PyString_FromString), whose lock is another")


def _version_of(image: SymbolSource) -> tuple[tuple[int, int], str]:
    address = image.default_version_symbol("Py_Version")
    if address is not None:
        packed = int(struct.unpack("<Q", image.read(address, 8))[0])
        return (packed >> 24, packed >> 16 & 0xFF), _version_text(packed)
    for minor, name in _MARKERS_BEFORE_PY_VERSION:
        if image.default_version_symbol(name) is not None:
            strings = image.section(".rodata")
            return minor, _version_string(image.section_bytes(strings) if strings else b"", minor)
    return _before_3_6(image)


def _before_3_6(image: SymbolSource) -> tuple[tuple[int, int], str]:
    """Return what the strings say: no function tells these versions apart that all of them keep."""
    section = image.section(".rodata")
    strings = image.section_bytes(section) if section else b""
    for minor in ((3, number) for number in range(_OLDEST[1] - 1, -1, -1)):
        version = _version_string(strings, minor)
        if version.count(".") > 1:
            return minor, version
    return (3, 5), "3.5 or older"


def _version_text(packed: int) -> str:
    level = _RELEASE_LEVELS.get(packed >> 4 & 0xF)
    suffix = f"{level}{packed & 0xF}" if level else ""
    return f"{packed >> 24}.{packed >> 16 & 0xFF}.{packed >> 8 & 0xFF}{suffix}"


def _version_string(strings: bytes | memoryview, minor: tuple[int, int]) -> str:
    # Other strings look like versions too: a SQLite that is linked in, the installation prefix.
    # A linker may also store the version as the tail of that prefix, so tails count as well, but
    # only when no whole string settles the question.
    number = rb"%d\.%d\.\d{1,3}(?:(?:a|b|rc)\d{1,3})?\+?" % minor
    for before in (rb"(?<=\0)", rb"(?<![0-9.])"):
        found = {match[1] for match in re.finditer(before + rb"(" + number + rb")\0", strings)}
        if len(found) == 1:
            return found.pop().decode("ascii")
    return f"{minor[0]}.{minor[1]}"


def _refuse_unknown_minor(minor: tuple[int, int], version: str) -> None:
    if minor < _OLDEST:
        raise UnsupportedPython(
            f"this is CPython {version}; the oldest whose GIL is known is 3.6 (the file does not "
            "export PyOS_FSPath, which came with it)",
            remedy=f"Where its structures lie is not known. Run the program on CPython {_KNOWN}.",
        )
    if minor > _NEWEST:
        raise UnsupportedPython(
            f"this is CPython {version}, newer than the versions that gilscope was made for "
            f"({_KNOWN}, by the exported Py_Version)",
            remedy="Use a later gilscope, or run the program on a version that this one knows.",
        )
    # Structures are only frozen from the first release candidate on.
    if re.search(r"[ab]\d+\+?$", version):
        raise UnsupportedPython(
            f"this is CPython {version}, a preview whose structures may differ from the release",
            remedy="Wait for the first release candidate: structures are frozen from then on.",
        )


def _required(image: SymbolSource, name: str, version: str) -> int:
    address = image.default_version_symbol(name)
    if address is None:
        raise GilCodeNotFound(f"this is CPython {version}, but the file does not export {name}")
    return address


def _debug_offsets(image: SymbolSource, runtime_vaddr: int, version: str) -> tuple[int, ...]:
    words = struct.unpack(f"<{WORDS_NEEDED}Q", image.read(runtime_vaddr, WORDS_NEEDED * 8))
    if words[0] != COOKIE or _version_text(words[1]) != version:
        raise GilCodeNotFound(
            f"_PyRuntime does not begin with the debug offsets of CPython {version}"
        )
    return words
