"""Whether an instruction starts at an address, against a disassembler and on written pieces."""

import subprocess
from pathlib import Path

import pytest

from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts, Place
from support.elf.disassembly import instructions
from support.gil.lock_program import BUILDS, build_program, require_tools

_PIECES = """
    .macro function name
    .globl \\name
    .type \\name, @function
    \\name:
    .cfi_startproc
    .endm

    .macro end name
    .cfi_endproc
    .size \\name, . - \\name
    .endm

    .text
    function constant
    .globl hidden_call
    .byte 0x48, 0xb8  # movabs rax, imm64
    hidden_call:
    .byte 0xe8, 0, 0, 0, 0, 0, 0, 0
    .globl behind_constant
    behind_constant:
    ret
    end constant

    function unknown
    nop
    .byte 0x06  # no instruction
    .globl behind_unknown
    behind_unknown:
    ret
    end unknown

    .globl outside
    outside:
    ret
    .section .note.GNU-stack, "", @progbits
"""


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> ElfImage:
    """Assemble the pieces."""
    require_tools()
    folder = tmp_path_factory.mktemp("pieces")
    source, library = folder / "pieces.s", folder / "pieces.so"
    source.write_text(_PIECES)
    subprocess.run(["gcc", "-shared", "-o", str(library), str(source)], check=True)
    return ElfImage(library.read_bytes())


def _starts(image: ElfImage) -> InstructionStarts:
    return InstructionStarts(image, read_frame_table(image))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("constant", Place.START),
        ("hidden_call", Place.INSIDE),
        ("behind_constant", Place.START),
        ("unknown", Place.START),
        ("behind_unknown", Place.UNKNOWN),
        ("outside", Place.OUTSIDE),
    ],
)
def test_places_are_told_apart(pieces: ElfImage, name: str, place: Place) -> None:
    """
    A call inside a constant, code behind unknown bytes and code of no function are no starts.
    """
    assert place is _starts(pieces).place_of(pieces.dynamic_symbols[name].vaddr)


def test_the_order_of_questions_makes_no_difference(pieces: ElfImage) -> None:
    """
    What was decoded before is used again, backward and forward.
    """
    starts = _starts(pieces)
    function = pieces.dynamic_symbols["constant"].vaddr

    backward = {offset: starts.place_of(function + offset) for offset in range(10, -1, -1)}

    assert backward == {offset: starts.place_of(function + offset) for offset in range(11)}
    assert [0, 10] == sorted(offset for offset, place in backward.items() if place is Place.START)


def test_data_is_no_code(pieces: ElfImage) -> None:
    """
    An address that is not loaded as code is outside, even where the file has bytes for it.
    """
    assert Place.OUTSIDE is _starts(pieces).place_of(0)


def test_starts_are_those_of_a_disassembler(tmp_path: Path) -> None:
    """
    In every function of a compiled program, exactly the addresses of the disassembler are starts.
    """
    program = build_program(BUILDS[0], tmp_path)
    image = ElfImage(program.read_bytes())
    starts = _starts(image)
    text = image.section(".text")
    assert text is not None
    functions = [
        function
        for function in read_frame_table(image).functions
        if text.vaddr <= function.start < text.vaddr + text.size
    ]
    expected = {
        each.address
        for function in functions
        for each in instructions(image, function.start, function.end)
    }

    found = {
        address
        for function in functions
        for address in range(function.start, function.end)
        if starts.is_start(address)
    }

    assert len(expected) > 300
    assert expected == found
