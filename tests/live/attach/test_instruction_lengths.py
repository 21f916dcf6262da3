"""Lengths of all instructions of all interpreters, against a disassembler: sixteen millions."""

import pytest

from gilscope.elf.image import ElfImage
from support.elf.disassembly import wrong_lengths
from support.interpreters.known import INTERPRETERS, Interpreter


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.beside_others
@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_every_instruction_has_the_length_that_a_disassembler_sees(
    interpreter: Interpreter,
) -> None:
    """
    In the whole code of the interpreter, each instruction ends where the next one begins.
    """
    image = ElfImage(interpreter.elf.read_bytes())
    text = image.section(".text")
    assert text is not None

    number, wrong = wrong_lengths(image, text.vaddr, text.vaddr + text.size)

    assert [] == wrong
    assert number > text.size // 8
