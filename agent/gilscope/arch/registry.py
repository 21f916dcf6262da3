"""The processors that gilscope knows."""

from typing import Final

from gilscope.arch.aarch64.architecture import AARCH64
from gilscope.arch.base import Architecture
from gilscope.arch.x86_64.architecture import X86_64

__all__ = ["ARCHITECTURES", "architecture_named", "architecture_of_elf"]

ARCHITECTURES: Final = (X86_64, AARCH64)

_BY_NAME: Final = {each.name: each for each in ARCHITECTURES}
_BY_ELF_MACHINE: Final = {each.elf_machine: each for each in ARCHITECTURES}


def architecture_named(name: str) -> Architecture | None:
    """Return the processor that ``uname -m`` calls *name*, None where it is not known."""
    return _BY_NAME.get(name)


def architecture_of_elf(machine: int) -> Architecture | None:
    """Return the processor with this number in ELF files, None where it is not known."""
    return _BY_ELF_MACHINE.get(machine)
