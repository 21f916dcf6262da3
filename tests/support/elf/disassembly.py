"""What a disassembler says of a program's instructions: capstone."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import capstone

from gilscope.arch.x86_64.length import instruction_length
from gilscope.elf.image import ElfImage

__all__ = ["Instruction", "instructions", "wrong_lengths"]

_DIRECT = re.compile(r"0x[0-9a-f]+")
_THROUGH_SLOT = re.compile(r"qword ptr \[rip ([+-]) (0x[0-9a-f]+)\]")


class Instruction(NamedTuple):
    """One instruction, or ``.byte`` where there is none."""

    address: int
    size: int
    mnemonic: str
    """Prefixes that do something included: ``bnd jmp``."""
    operands: str
    code: bytes

    @property
    def end(self) -> int:
        """Where the next one starts."""
        return self.address + self.size

    @property
    def target(self) -> int | None:
        """Where a direct call or jump goes; None for anything else."""
        is_branch = self.mnemonic.split()[-1] == "call" or "j" in self.mnemonic
        return int(self.operands, 16) if is_branch and _DIRECT.fullmatch(self.operands) else None

    @property
    def slot(self) -> int | None:
        """Address of the eight bytes beside the code that are its operand; None: it has none."""
        found = _THROUGH_SLOT.fullmatch(self.operands)
        return None if found is None else self.end + int("".join(found.groups()), 16)


def instructions(image: ElfImage, start: int, end: int) -> Iterator[Instruction]:
    """Yield the instructions from *start* up to *end*, where one has to end."""
    code = image.read(start, end - start)
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.skipdata = True
    for address, size, mnemonic, operands in disassembler.disasm_lite(code, start):
        position = address - start
        yield Instruction(address, size, mnemonic, operands, code[position : position + size])


def wrong_lengths(image: ElfImage, start: int, end: int, off_by: int = 0) -> tuple[int, list[str]]:
    """Return how many instructions were compared, and those whose length is another one.

    *off_by* is added to the disassembler's lengths.
    """
    code = image.read(start, end - start)
    number = 0
    wrong = []
    for each in instructions(image, start, end):
        number += 1
        length = instruction_length(code, each.address - start)
        if length != each.size + off_by:
            words = f"{each.mnemonic} {each.operands}"
            wrong.append(f"{each.address:#x} {words}: {length} bytes, not {each.size}")
    return number, wrong
