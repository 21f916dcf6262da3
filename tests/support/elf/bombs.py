"""Files of some megabytes whose tables would take gigabytes or hours, if they were all followed."""

import lzma
import struct
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BOMBS", "ELF_HEADER", "Part", "elf_file"]

_HEADER = 64
_MB = 1 << 20
_CODE = 6  # allocated, executable
_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
ELF_HEADER = b"\x7fELF\x02\x01\x01" + bytes(9)
_TEXT = 0x8000
"""Address and, as all is loaded at 0, offset of the first section."""


class Part(NamedTuple):
    """A section."""

    name: bytes
    content: bytes
    kind: int = _PROGBITS
    flags: int = 2
    link: int = 0


def elf_file(
    parts: list[Part],
    segments: Callable[[dict[bytes, tuple[int, int]]], list[tuple[int, int, int]]] | None = None,
    *,
    copies: int = 0,
) -> bytes:
    """Return a library with these sections, all loaded at their offsets.

    *segments* makes further ones, kind, offset and size, from where sections are. *copies* is the
    number of further sections like the first one.
    """
    names = b"\0" + b"\0".join(part.name for part in parts) + b"\0.names\0"
    body = bytearray()
    places: dict[bytes, tuple[int, int]] = {}
    name_at: dict[bytes, int] = {}
    for part in (*parts, Part(b".names", names)):
        body += bytes(-len(body) % 16)
        name_at[part.name] = names.index(b"\0" + part.name + b"\0") + 1
        places[part.name] = (_TEXT + len(body), len(part.content))
        body += part.content
    headers = [bytes(_HEADER)]
    for part in (*parts, *(parts[:1] * copies), Part(b".names", names)):
        offset, size = places[part.name]
        fields = (
            name_at[part.name],
            part.kind,
            part.flags,
            offset,
            offset,
            size,
            part.link,
            0,
            1,
            0,
        )
        headers.append(struct.pack("<IIQQQQIIQQ", *fields))
    end = _TEXT + len(body)
    loaded = [(_LOAD, 0, end), *(segments(places) if segments else ())]
    programs = b"".join(
        struct.pack("<IIQQQQQQ", kind, 5, offset, offset, offset, size, size, 4)
        for kind, offset, size in loaded
    )
    header = ELF_HEADER + struct.pack(
        "<HHIQQQIHHHHHH",
        *(3, 62, 1, 0, _HEADER, end, 0, _HEADER, 56, len(loaded), 64, len(headers)),
        len(headers) - 1,
    )
    start = header + programs
    return start + bytes(_TEXT - len(start)) + bytes(body) + b"".join(headers)


def _cie(program: bytes = b"") -> bytes:
    content = bytes(4) + b"\x01zR\0\x01\x78\x10\x01\x1b" + program
    return struct.pack("<I", len(content)) + content


def _fde(section: int, position: int, start: int, size: int) -> bytes:
    """Return the entry for [start, start + size) at a position of a section; the CIE is first."""
    fields = (position + 4, start - section - position - 8, size)
    return struct.pack("<IIiI", 13, *fields) + b"\0"


def _one_function(text: int) -> bytes:
    """Return an unwind table at _TEXT for one function behind it."""
    cie = _cie()
    start = _TEXT + -(-(len(cie) + 17) // 16) * 16
    return cie + _fde(_TEXT, len(cie), start, text)


def _dynsym(number: int) -> list[Part]:
    symbols = bytearray()
    for index in range(number):
        symbols += struct.pack("<IBBHQQ", index % 4096, 0x12, 0, 1, index + 1, 1)
    strings = b"".join(b"%07d" % index for index in range(600)) * 2 + b"\0"
    return [Part(b".dynstr", strings), Part(b".dynsym", bytes(symbols), _SYMTAB, link=1)]


def _shared_name() -> bytes:
    return elf_file([Part(b"n" * (8 * _MB), b"")], copies=65000)


def _long_name() -> bytes:
    return elf_file([Part(b"n" * (8 * _MB), b"")], copies=4000)


def _overlapping_code() -> bytes:
    table = _one_function(8 * _MB)
    text = Part(b".text", b"\xe8" * (8 * _MB), flags=_CODE)
    return elf_file([text, Part(b".eh_frame", table)], copies=4000)


def _calls() -> bytes:
    number = 3 * _MB
    table = _one_function(5 * number)
    text = b"".join(struct.pack("<Bi", 0xE8, -5 * (index + 1)) for index in range(number))
    return elf_file([Part(b".eh_frame", table), Part(b".text", text, flags=_CODE)])


def _many_functions() -> bytes:
    cie = _cie()
    entries = bytearray(cie)
    for index in range(_MB):
        entries += _fde(_TEXT, len(entries), _TEXT + _MB - index, 1)
    return elf_file([Part(b".eh_frame", bytes(entries))])


def _messages() -> bytes:
    return elf_file([Part(b".rodata", b"\0" + b"take_gil\0" * (2 * _MB))])


def _notes() -> bytes:
    note = struct.pack("<III", 4, 0, 1) + b"ABC\0"
    return elf_file(
        [Part(b".note", note * _MB)],
        lambda places: [(_NOTE, *places[b".note"])] * 200,
    )


def _relocations() -> bytes:
    relocations = b"".join(struct.pack("<QIIQ", index, 7, 1, 0) for index in range(_MB // 2))
    return elf_file([*_dynsym(2), Part(b".rela.plt", relocations, _RELA)], copies=100)


def _unpacked() -> bytes:
    return elf_file([Part(b".gnu_debugdata", lzma.compress(bytes(512 * _MB), preset=0))])


def _nested() -> bytes:
    content = elf_file([Part(b".text", b"")])
    for _ in range(200):
        content = elf_file([Part(b".gnu_debugdata", lzma.compress(content, preset=0))])
    return content


def _needed() -> bytes:
    entries = struct.pack("<QQQQ", 5, _TEXT, 10, 4096) + struct.pack("<QQ", 1, 0) * _MB
    return elf_file(
        [Part(b".dynstr", b"n" * 4000 + bytes(96)), Part(b".dynamic", entries)],
        lambda places: [(_DYNAMIC, *places[b".dynamic"])],
    )


BOMBS: dict[str, Callable[[], bytes]] = {
    "65000 sections of one name": _shared_name,
    "a name of 8 MB": _long_name,
    "4000 sections of the same code": _overlapping_code,
    "three million calls": _calls,
    "a million functions": _many_functions,
    "half a million symbols": lambda: elf_file(_dynsym(_MB // 2)),
    "two million messages": _messages,
    "two hundred times a million notes": _notes,
    "half a million relocations": _relocations,
    "half a GB unpacked": _unpacked,
    "packed two hundred times": _nested,
    "a million libraries": _needed,
}
