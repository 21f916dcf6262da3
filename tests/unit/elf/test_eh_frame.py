"""The unwind table against readelf's own interpretation of it."""

import re
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.cfi import Alignment, UnwindRule, unwind_rule
from gilscope.elf.dwarf import DwarfReader
from gilscope.elf.eh_frame import FrameTable, Function, read_frame_table
from gilscope.elf.image import ElfError, ElfImage
from support.gil.lock_program import BUILDS, Build, build_program

_FDE = re.compile(r"FDE .*pc=(?P<start>[0-9a-f]+)\.\.(?P<end>[0-9a-f]+)$")
_ENTRY = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE) ")
_ROW = re.compile(r"^(?P<pc>[0-9a-f]{16}) (?P<cfa>r[sb]p)\+(?P<offset>\d+) +(?P<saved>.*)$")
_WITH_FRAME_POINTER = Build("frame-pointer", ("-O2", "-fno-omit-frame-pointer", *BUILDS[0].flags))
_DEF_CFA, _DEF_CFA_OFFSET, _SAVE_RETURN_ADDRESS = b"\x0c\x07\x08", b"\x0e\x10", b"\x90\x01"


def _name(build: Build) -> str:
    return build.name


@pytest.fixture(scope="module", params=[BUILDS[0], BUILDS[-1], _WITH_FRAME_POINTER], ids=_name)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a program whose functions have frames of several shapes."""
    return build_program(request.param, tmp_path_factory.mktemp("program"))


def _table(program: Path) -> FrameTable:
    return read_frame_table(ElfImage(program.read_bytes()))


def _readelf(program: Path) -> str:
    command = ["readelf", "--debug-dump=frames-interp", "--wide", str(program)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _saved_frame_pointer(listing: str, header: list[str]) -> int | None:
    columns = dict(zip(header, listing.split(), strict=False))
    saved = columns.get("rbp", "u")
    return int(saved[1:]) if saved.startswith("c") else None


def _rows(program: Path) -> dict[int, UnwindRule]:
    """Return every row that readelf works out: address -> rule."""
    rows: dict[int, UnwindRule] = {}
    header: list[str] = []
    in_function = False
    for line in _readelf(program).splitlines():
        if _ENTRY.search(line):
            in_function = " FDE " in line
        elif line.lstrip().startswith("LOC"):
            header = line.split()[2:]
        elif in_function and (row := _ROW.match(line)) is not None:
            rows[int(row["pc"], 16)] = UnwindRule(
                cfa_from_frame_pointer=row["cfa"] == "rbp",
                cfa_offset=int(row["offset"]),
                saved_frame_pointer_offset=_saved_frame_pointer(row["saved"], header),
            )
    return rows


def test_functions_are_those_of_readelf(program: Path) -> None:
    """
    Every FDE that readelf lists is one piece of code, sorted by address.
    """
    listed = (_FDE.search(line) for line in _readelf(program).splitlines())
    expected = sorted((int(fde["start"], 16), int(fde["end"], 16)) for fde in listed if fde)

    assert expected == [tuple(function) for function in _table(program).functions]


def test_rules_are_those_of_readelf(program: Path) -> None:
    """
    At the beginning of each row, readelf and the table tell the same way to the caller.
    """
    expected = _rows(program)
    table = _table(program)

    assert len(expected) > 50
    assert expected == {pc: table.rule_at(pc) for pc in expected}


def test_a_row_holds_up_to_the_next_one(program: Path) -> None:
    """
    One byte before a row begins, the rule is still that of the row before in the same function.
    """
    rows = _rows(program)
    table = _table(program)
    ordered = sorted(rows)
    pairs = [
        (before, after)
        for before, after in pairwise(ordered)
        if table.containing(before) == table.containing(after)
    ]

    assert [rows[before] for before, _ in pairs] == [table.rule_at(pc - 1) for _, pc in pairs]


def test_an_address_between_functions_has_no_rule(program: Path) -> None:
    """
    Addresses before the first function and behind the last one belong to none.
    """
    table = _table(program)
    outside = (table.functions[0].start - 1, table.functions[-1].end)

    assert [None, None] == [table.containing(pc) for pc in outside]
    assert [None, None] == [table.rule_at(pc) for pc in outside]


def _from_rsp(offset: int, saved: int | None = None) -> UnwindRule:
    return UnwindRule(
        cfa_from_frame_pointer=False, cfa_offset=offset, saved_frame_pointer_offset=saved
    )


def _from_rbp(offset: int) -> UnwindRule:
    return UnwindRule(
        cfa_from_frame_pointer=True, cfa_offset=offset, saved_frame_pointer_offset=None
    )


def _rule(program: bytes, distance: int = 100) -> UnwindRule | None:
    return unwind_rule(
        _DEF_CFA + _SAVE_RETURN_ADDRESS,
        program,
        registers=X86_64.registers,
        alignment=Alignment(code=1, data=-8),
        distance=distance,
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (b"", _from_rsp(8)),
        (_DEF_CFA_OFFSET + b"\x86\x02", _from_rsp(16, saved=-16)),
        (b"\x86\x02\xc6", _from_rsp(8)),
        (b"\x86\x02\x06\x06", _from_rsp(8)),
        (b"\x86\x02\x08\x06", _from_rsp(8)),
        (b"\x05\x06\x03", _from_rsp(8, saved=-24)),
        (b"\x11\x06\x7d", _from_rsp(8, saved=24)),
        (b"\x2f\x06\x03", _from_rsp(8, saved=24)),
        (b"\x0d\x06", _from_rbp(8)),
        (b"\x12\x06\x7e", _from_rbp(16)),
        (b"\x13\x7c", _from_rsp(32)),
        (b"\x0a\x0e\x20\x0b", _from_rsp(8)),
        (b"\x2e\x10\x00", _from_rsp(8)),
        (b"\x02\xc8\x0e\x20", _from_rsp(8)),
        (b"\x03\x10\x00\x0e\x20", _from_rsp(32)),
        (b"\x04\x10\x00\x00\x00\x0e\x20", _from_rsp(32)),
        (b"\x0f\x02\x77\x08", None),
        (b"\x0f\x02\x77\x08\x0e\x20", None),
        (b"\x0f\x02\x77\x08\x0c\x07\x08", _from_rsp(8)),
        (b"\x0d\x0a", None),
        (b"\x07\x06", None),
        (b"\x09\x06\x03", None),
        (b"\x10\x06\x02\x77\x08", None),
        (b"\x90\x02", None),
    ],
)
def test_instructions_do_what_dwarf_says(program: bytes, expected: UnwindRule | None) -> None:
    """
    Each call frame instruction has its effect; what two registers can't express has no rule.
    """
    assert expected == _rule(program)


@pytest.mark.parametrize("program", [b"\x0b", b"\x3f", b"\x0e", b"\x0f\x09\x00", b"\x04\x00"])
def test_damaged_instructions_are_refused(program: bytes) -> None:
    """
    An unknown or cut instruction, or a state that was never kept, raises ElfError.
    """
    with pytest.raises(ElfError):
        _rule(program)


def test_numbers_are_decoded() -> None:
    """
    The examples of the DWARF standard for LEB128 numbers decode to their values.
    """
    unsigned = {2: b"\x02", 127: b"\x7f", 128: b"\x80\x01", 129: b"\x81\x01", 12857: b"\xb9\x64"}
    signed = {2: b"\x02", -2: b"\x7e", 127: b"\xff\x00", -127: b"\x81\x7f", -128: b"\x80\x7f"}

    for value, encoded in unsigned.items():
        assert value == DwarfReader(encoded, 0, len(encoded)).unsigned_leb()
    for value, encoded in signed.items():
        assert value == DwarfReader(encoded, 0, len(encoded)).signed_leb()


def test_a_terminator_in_the_middle_is_stepped_over(program: Path) -> None:
    """
    Records behind a zero length, as linked-in start-up objects leave it, are found.
    """
    image = ElfImage(program.read_bytes())
    section = image.section(".eh_frame")
    assert section is not None
    content = bytes(image.section_bytes(section))
    (first_size,) = struct.unpack_from("<I", content)
    cut = 4 + first_size
    changed = bytearray(program.read_bytes())
    # The first FDE moves on by four bytes: its distance to the CIE and to its code changes.
    fde_size, distance, start = struct.unpack_from("<IIi", content, cut)
    fde = (
        struct.pack("<IIi", fde_size, distance + 4, start - 4)
        + content[cut + 12 : cut + 4 + fde_size]
    )
    record = content[:cut] + bytes(4) + fde
    changed[section.offset : section.offset + len(record)] = record
    # Only these records are kept; the rest of the section becomes terminators.
    rest = section.offset + len(record)
    changed[rest : section.offset + section.size] = bytes(section.size - len(record))

    first = _fde_functions(content, cut, section.vaddr)

    assert first == read_frame_table(ElfImage(bytes(changed))).functions


def _fde_functions(content: bytes, position: int, vaddr: int) -> tuple[Function, ...]:
    start, size = struct.unpack_from("<iI", content, position + 8)
    begin = vaddr + position + 8 + start
    return (Function(begin, begin + size),)
