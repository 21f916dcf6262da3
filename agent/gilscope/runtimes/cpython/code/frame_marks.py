"""What CPython marks its frames with, the same in every version that has it."""

from typing import Final

__all__ = ["FIRST_OWNER_WITHOUT_CODE", "OWNER_GENERATOR", "REFERENCE_FLAGS"]

OWNER_GENERATOR: Final = 1
"""The owner of a frame that belongs to a generator (FRAME_OWNED_BY_GENERATOR, 3.11+)."""
FIRST_OWNER_WITHOUT_CODE: Final = 3
"""From this value on the owner of a frame is C code, which leaves an entry frame on the stack
(FRAME_OWNED_BY_CSTACK, 3.12+). Below are threads, generators, and frame objects."""
REFERENCE_FLAGS: Final = 7
"""The low bits of a ``_PyStackRef``, which are no part of the address (3.14+)."""
