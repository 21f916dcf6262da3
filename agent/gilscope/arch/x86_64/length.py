"""How long an x86-64 instruction is, from its bytes, in 64-bit mode.

Only lengths are known, not meanings. What is not in the tables has no length: an opcode that no
compiler emits, a prefix behind a REX prefix, or forms on which processors differ. The tables are
those of the Intel 64 manual, volume 2, appendix A.

Our own, because a length is all that is wanted, in whatever Python it runs. capstone is as quick
(0.46 s for the 698,186 instructions of a CPython 3.11, here 0.37 s), but it is a wheel of 1.5 MB
for each platform, 11 MB installed and 11 MB more of memory in an agent that runs as root, and it
gives lengths to forms on which processors differ. Tests hold the lengths against it.
"""

from typing import Final

__all__ = ["LONGEST_INSTRUCTION", "instruction_length"]

LONGEST_INSTRUCTION: Final = 15
"""Bytes; the processor refuses more."""

Code = bytes | memoryview

_OPERAND_SIZE: Final = 0x66
_ADDRESS_SIZE: Final = 0x67
_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
# Of these the processor takes none in front of a VEX or EVEX prefix.
_NOT_BEFORE_VEX: Final = frozenset(b"\x66\xf0\xf2\xf3")
_REX: Final = range(0x40, 0x50)
_REX_W: Final = 8

_TWO_BYTES: Final = 0x0F
_VEX_3: Final = 0xC4
_VEX_2: Final = 0xC5
_EVEX: Final = 0x62
_VECTOR_PREFIXES: Final = frozenset((_VEX_3, _VEX_2, _EVEX))

# What follows an opcode: a ModRM byte with its operand (this bit), and an immediate.
_MODRM: Final = 0x80
_IMMEDIATE: Final = 0x7F
_LONGEST_IMMEDIATE: Final = 8
# Up to that it is the number of bytes; these depend on prefixes and on the ModRM byte.
_Z: Final = 0x10  # 4 bytes; 2 with operand size 16
_V: Final = 0x11  # like z, and 8 with REX.W
_RELATIVE: Final = 0x12  # 4 bytes; with operand size 16 processors differ
_ADDRESS: Final = 0x13  # 8 bytes; 4 with address size 32
_TEST_1: Final = 0x14  # 1 byte if the ModRM byte says test, else none
_TEST_Z: Final = 0x15  # likewise, like z

_OF_TEST: Final = {_TEST_1: 1, _TEST_Z: _Z}

_LAYOUTS: Final = {
    "-": 0,
    "1": 1,
    "2": 2,
    "3": 3,
    "z": _Z,
    "v": _V,
    "rel": _RELATIVE,
    "addr": _ADDRESS,
    "M": _MODRM,
    "M+1": _MODRM | 1,
    "M+z": _MODRM | _Z,
    "M+t1": _MODRM | _TEST_1,
    "M+tz": _MODRM | _TEST_Z,
}


def _table(opcodes: dict[str, str]) -> tuple[int | None, ...]:
    """Return the layout of each opcode, None for those that are not listed."""
    layouts: list[int | None] = [None] * 256
    for layout, listed in opcodes.items():
        for span in listed.split():
            first, _, last = span.partition("-")
            for opcode in range(int(first, 16), int(last or first, 16) + 1):
                layouts[opcode] = _LAYOUTS[layout]
    return tuple(layouts)


_ONE_BYTE: Final = _table(
    {
        "-": "50-5f 6c-6f 90-99 9b-9f a4-a7 aa-af c3 c9 cb cc cf d7 ec-ef f1 f4 f5 f8-fd",
        "1": "04 0c 14 1c 24 2c 34 3c 6a 70-7f a8 b0-b7 cd e0-e7 eb",
        "2": "c2 ca",
        "3": "c8",
        "z": "05 0d 15 1d 25 2d 35 3d 68 a9",
        "v": "b8-bf",
        "rel": "e8 e9",
        "addr": "a0-a3",
        "M": "00-03 08-0b 10-13 18-1b 20-23 28-2b 30-33 38-3b 63 84-8f d0-d3 d8-df fe ff",
        "M+1": "6b 80 83 c0 c1 c6",
        "M+z": "69 81 c7",
        "M+t1": "f6",
        "M+tz": "f7",
    }
)
_AFTER_0F: Final = _table(
    {
        "-": "05-09 0b 0e 30-35 37 77 a0-a2 a8-aa c8-cf",
        "rel": "80-8f",
        "M": "00-03 0d 10-1f 28-2f 40-6f 74-76 7c-7f 90-9f a3 a5 ab ad-b9 bb-c1 c3 c7 d0-ff",
        "M+1": "70-73 a4 ac ba c2 c4-c6",
    }
)
_AFTER_0F_38: Final = _table(
    {"M": "00-0b 10 14 15 17 1c-1e 20-25 28-2b 30-41 80-82 c8-cd cf db-df f0-f3 f5 f6 f8-fc"}
)
_AFTER_0F_3A: Final = _table({"M+1": "08-0f 14-17 20-22 40-42 44 60-63 cc ce cf df"})
_AFTER_0F_MAPS: Final = {0x38: _AFTER_0F_38, 0x3A: _AFTER_0F_3A}

# Maps of the vector instructions, by their numbers in the prefix.
_VECTOR_1: Final = _table(
    {"-": "77", "M": "10-17 28-2f 41-6f 74-76 78-7f 90-99 ae c3 d0-ff", "M+1": "70-73 c2 c4-c6"}
)
_VECTOR_2: Final = _table({"M": "00-ff"})
_VECTOR_3: Final = _table({"M+1": "00-ff"})
_UNKNOWN: Final = _table({})
_VEX_MAPS: Final = {1: _VECTOR_1, 2: _VECTOR_2, 3: _VECTOR_3}
# The last two came with half-precision numbers.
_EVEX_MAPS: Final = _VEX_MAPS | {5: _VECTOR_2, 6: _VECTOR_2}

_REGISTER: Final = 0b11  # of the two highest bits of a ModRM byte: its operand is no memory
_SIB_FOLLOWS: Final = 4
_NO_BASE: Final = 5
_LOWEST_AND_MODE: Final = 0xC7


def _forms(*numbers: int) -> frozenset[int]:
    """Return the ModRM bytes with one of *numbers* in the three bits that extend the opcode."""
    return frozenset(modrm for modrm in range(256) if modrm >> 3 & 7 in numbers)


_TEST: Final = _forms(0, 1)
_TRANSACTION: Final = 0xF8
# The ModRM bytes of opcodes of one byte that need certain ones.
_KNOWN_FORMS: Final = {
    0x8F: _forms(0),
    0xC6: _forms(0) | {_TRANSACTION},
    0xC7: _forms(0) | {_TRANSACTION},
    0xFE: _forms(0, 1),
    0xFF: _forms(0, 1, 2, 3, 4, 5, 6),
}


def _operand_length(modrm: int) -> int:
    """Return the bytes of a ModRM byte and of the SIB byte and displacement that it announces."""
    mode, base = modrm >> 6, modrm & 7
    if mode == _REGISTER:
        return 1
    length = 2 if base == _SIB_FOLLOWS else 1
    if mode == 1:
        return length + 1
    return length + 4 if mode or base == _NO_BASE else length


_OPERAND_LENGTHS: Final = tuple(_operand_length(modrm) for modrm in range(256))


def instruction_length(code: Code, start: int = 0) -> int | None:
    """Return the bytes of the instruction at ``code[start]``; None if it is unknown or cut off."""
    try:
        end = _end(code, start)
    except IndexError:
        return None
    if end is None or end > len(code) or end - start > LONGEST_INSTRUCTION:
        return None
    return end - start


def _end(code: Code, start: int) -> int | None:
    position = start
    opcode = code[position]
    while opcode in _PREFIXES:
        position += 1
        opcode = code[position]
    if opcode in _VECTOR_PREFIXES:
        return _vector_end(code, start, position)
    opcodes = position
    rex = 0
    if opcode in _REX:
        rex = opcode
        position += 1
        opcode = code[position]
    if opcode == _TWO_BYTES:
        layout, position = _after_0f(code, position + 1)
    else:
        layout = _ONE_BYTE[opcode]
        if opcode in _KNOWN_FORMS and code[position + 1] not in _KNOWN_FORMS[opcode]:
            layout = None
    if layout is None:
        return None
    position += 1
    if layout & _MODRM:
        modrm = code[position]
        position = _behind_operand(code, position)
        layout &= _IMMEDIATE
        if layout in _OF_TEST:
            layout = _OF_TEST[layout] if modrm in _TEST else 0
    if layout > _LONGEST_IMMEDIATE:
        prefixes = bytes(code[start:opcodes])
        return _behind_sized(layout, position, prefixes, is_wide=bool(rex & _REX_W))
    return position + layout


def _after_0f(code: Code, position: int) -> tuple[int | None, int]:
    """Return the layout of the opcode that continues at *position*, and where its last byte is."""
    opcode = code[position]
    table = _AFTER_0F_MAPS.get(opcode)
    if table is None:
        return _AFTER_0F[opcode], position
    return table[code[position + 1]], position + 1


def _behind_operand(code: Code, position: int) -> int:
    modrm = code[position]
    behind = position + _OPERAND_LENGTHS[modrm]
    if modrm & _LOWEST_AND_MODE == _SIB_FOLLOWS and code[position + 1] & 7 == _NO_BASE:
        return behind + 4
    return behind


def _behind_sized(kind: int, position: int, prefixes: bytes, *, is_wide: bool) -> int | None:
    """Return where an immediate ends whose size depends on what stands before the opcode."""
    if kind == _ADDRESS:
        return position + (4 if _ADDRESS_SIZE in prefixes else 8)
    # REX.W is the stronger one.
    is_short = _OPERAND_SIZE in prefixes and not is_wide
    if kind == _RELATIVE:
        return None if is_short else position + 4
    if kind == _V and is_wide:
        return position + 8
    return position + (2 if is_short else 4)


def _vector_end(code: Code, start: int, position: int) -> int | None:
    """Return where an instruction with a VEX or EVEX prefix at *position* ends."""
    prefix, first = code[position], code[position + 1]
    if not _NOT_BEFORE_VEX.isdisjoint(code[start:position]):
        return None
    if prefix == _VEX_2:
        table, position = _VECTOR_1, position + 2
    elif prefix == _VEX_3:
        table, position = _VEX_MAPS.get(first & 0x1F, _UNKNOWN), position + 3
    else:
        if first & 0x08 or not code[position + 2] & 0x04:
            return None
        table, position = _EVEX_MAPS.get(first & 0x07, _UNKNOWN), position + 4
    layout = table[code[position]]
    if layout is None:
        return None
    position += 1
    if layout & _MODRM:
        position = _behind_operand(code, position)
    return position + (layout & _IMMEDIATE)
