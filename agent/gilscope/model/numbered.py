"""Words for people that the probes know by numbers."""

from enum import Enum
from typing import Self

__all__ = ["Numbered"]


class Numbered(Enum):
    """A word, and the number that stands for it in the kernel's tables."""

    number: int

    def __new__(cls, word: str, number: int) -> Self:
        """Make a member whose value is *word*."""
        member = object.__new__(cls)
        member._value_ = word
        member.number = number
        return member
