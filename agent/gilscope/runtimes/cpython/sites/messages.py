"""Finds the code that refers to the error messages of the GIL's functions."""

import re
from typing import Final

from gilscope.elf.image import ElfError, ElfImage

__all__ = ["GIL_MESSAGES", "YIELD_MESSAGES", "message_addresses", "references"]

GIL_MESSAGES: Final = re.compile(
    rb"Py(?:MUTEX|COND)_[A-Z_]+\((?:&|_PyRuntime\.ceval\.)?gil(?:->|\.|_)[a-z_]+\) failed\0"
    rb"|drop_gil: GIL is not locked\0"
    rb"|take_gil: NULL tstate\0"
    rb"|(?<=\0)(?:take_gil|drop_gil|drop_gil_impl)\0"
)
"""What take_gil and drop_gil say before they abort, and their names as they appear in it."""

YIELD_MESSAGES: Final = re.compile(rb"(?:ceval: )?tstate mix-up\0")
"""Said by the evaluation loop's yield up to CPython 3.12, and by nothing else."""

_MOST_MESSAGES: Final = 256
"""A build has some thirty."""


def message_addresses(image: ElfImage, messages: re.Pattern[bytes]) -> frozenset[int]:
    """Return the addresses of the matching strings among the image's constants."""
    found: set[int] = set()
    for section in image.sections:
        if section.name.startswith((".rodata", ".lrodata")):
            image.budget.search(section.size)
            for match in messages.finditer(image.section_bytes(section)):
                image.budget.spend(1)
                found.add(section.vaddr + match.start())
    if len(found) > _MOST_MESSAGES:
        raise ElfError(f"{len(found)} places hold messages of the GIL; no build has as many")
    return frozenset(found)


def references(image: ElfImage, addresses: frozenset[int]) -> dict[int, int]:
    """Return the instructions that load one of *addresses*: their address -> what they load."""
    found: dict[int, int] = {}
    if not addresses:
        return found
    architecture, spend = image.architecture, image.budget.spend
    for section in image.sections:
        if not section.is_code:
            continue
        image.budget.search(section.size)
        code, vaddr = image.section_bytes(section), section.vaddr
        found.update(architecture.address_loads(code, vaddr, addresses, spend))
        if not image.is_pie:
            found.update(architecture.absolute_loads(code, vaddr, addresses, spend))
    return found
