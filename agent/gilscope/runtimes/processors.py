"""Refuses what is known of one processor only."""

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound

__all__ = ["require_x86_64"]


def require_x86_64(image: ElfImage, what: str) -> None:
    """Raise GilCodeNotFound unless *image* is for x86-64, where alone *what* is known.

    Raises ElfError for a processor that is not known at all.
    """
    if image.architecture.elf_machine != X86_64.elf_machine:
        raise GilCodeNotFound(
            f"{what} is known on {X86_64.elf_name} only, and this file is built for {image.machine}"
        )
