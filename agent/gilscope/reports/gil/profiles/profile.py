"""What a profile is made of, whichever format it is written in."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from gilscope.model.stack import Frame
from gilscope.reports.gil.flame_levels import Level
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = ["Function", "Location", "Numbers", "Profile", "SampleKey", "ValueType", "location"]

_Key = TypeVar("_Key", bound=Hashable)
Function = tuple[str, str, int]
"""Name, file, and the line of the ``def``."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """What one of the values of a sample is."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a function of a program."""

    program: str
    """Its name, which stands for a mapping."""
    function: str
    file: str = ""
    first_line: int = 0
    line: int = 0

    @property
    def defined(self) -> Function:
        """The function itself, whichever of its lines is meant."""
        return self.function, self.file, self.first_line


def location(program: str, level: Level) -> Location:
    """Return where a level of a flame graph of *program* is, which may be words without a file."""
    if not isinstance(level, Frame):
        return Location(program, printable(level))
    line = level.first_line if level.line is None else level.line
    name, file = printable(level.function), printable(level.file)
    return Location(program, name, file, level.first_line, line)


SampleKey = tuple[tuple[Location, ...], tuple[tuple[str, str], ...]]
"""The stack of a sample, innermost first, and its labels by their names."""


@dataclass(slots=True)
class Profile:
    """Samples, and what they are about."""

    types: Sequence[ValueType]
    """Of the values of every sample, in their order."""
    default: ValueType
    """What viewers show first."""
    began_ns: int = 0
    """Since the epoch; 0: not known."""
    duration_ns: int = 0
    period_type: ValueType | None = None
    period: int = 0
    """How much of that one sample stands for; 0: not known."""
    comments: Sequence[str] = ()
    _samples: dict[SampleKey, list[int]] = field(default_factory=dict)

    def add(
        self, stack: Sequence[Location], labels: Mapping[str, str], values: Mapping[ValueType, int]
    ) -> None:
        """Add *values* at *stack*, innermost first; types that are not in it are zero."""
        if not any(values.values()):
            return
        key = tuple(stack), tuple(sorted(labels.items()))
        sums = self._samples.setdefault(key, [0] * len(self.types))
        for at, kind in enumerate(self.types):
            sums[at] += values.get(kind, 0)

    def samples(self) -> Iterable[tuple[SampleKey, Sequence[int]]]:
        """Return the samples, each with its values."""
        return self._samples.items()


class Numbers(dict[_Key, int]):
    """Numbers keys in the order in which they come, from *first*."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: _Key) -> int:
        self[key] = self._first + len(self)
        return self[key]
