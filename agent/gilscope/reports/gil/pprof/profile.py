"""A profile in the format of pprof, ``profile.proto``: written once all of its samples are known.

Texts, functions, locations and mappings are written once each, and known by number.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gilscope.reports.gil.pprof.wire import element, message, number, numbers

__all__ = ["Location", "Profile", "ValueType"]

_Key = TypeVar("_Key", bound=Hashable)
_Function = tuple[str, str, int]
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
    """Its name, to which pprof gives a mapping."""
    function: str
    file: str = ""
    first_line: int = 0
    line: int = 0


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
    period: tuple[ValueType, int] | None = None
    comments: Sequence[str] = ()
    _samples: dict["_SampleKey", list[int]] = field(default_factory=dict)

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

    def encoded(self) -> bytes:
        """Return the profile as one message, not compressed."""
        return _Writer(self).content(self._samples.items())


_SampleKey = tuple[tuple[Location, ...], tuple[tuple[str, str], ...]]
"""Its stack, and its labels."""


class _Numbers(dict[_Key, int]):
    """Numbers keys in the order in which they come."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: _Key) -> int:
        self[key] = self._first + len(self)
        return self[key]


class _Writer:
    """Numbers what a profile refers to. Zero is no number but of the empty text."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._texts: _Numbers[str] = _Numbers(0)
        self._programs: _Numbers[str] = _Numbers(1)
        self._functions: _Numbers[_Function] = _Numbers(1)
        self._locations: _Numbers[Location] = _Numbers(1)
        self._texts[""]

    def content(self, samples: Iterable[tuple[_SampleKey, Sequence[int]]]) -> bytes:
        """Return the profile with *samples*."""
        profile, text = self._profile, self._texts
        period = b""
        if profile.period is not None:
            kind, value = profile.period
            period = message(11, self._type(kind)) + number(12, value)
        parts = [
            *(element(1, self._type(kind)) for kind in profile.types),
            *(element(2, self._sample(*sample)) for sample in samples),
            # In this order: each refers to what comes after it.
            *(element(4, self._location(*each)) for each in self._locations.items()),
            *(element(3, self._mapping(*each)) for each in self._programs.items()),
            *(element(5, self._function(*each)) for each in self._functions.items()),
            number(9, profile.began_ns),
            number(10, profile.duration_ns),
            period,
            numbers(13, [text[comment] for comment in profile.comments]),
            number(14, text[profile.default.name]),
            # Last, for then all of them are known.
            *(element(6, each.encode()) for each in text),
        ]
        return b"".join(parts)

    def _type(self, kind: ValueType) -> bytes:
        return number(1, self._texts[kind.name]) + number(2, self._texts[kind.unit])

    def _sample(self, key: _SampleKey, values: Sequence[int]) -> bytes:
        stack, labels = key
        return b"".join(
            (
                numbers(1, [self._locations[location] for location in stack]),
                numbers(2, values),
                *(element(3, self._label(name, value)) for name, value in labels),
            )
        )

    def _label(self, name: str, value: str) -> bytes:
        return number(1, self._texts[name]) + number(2, self._texts[value])

    def _location(self, location: Location, at: int) -> bytes:
        function = location.function, location.file, location.first_line
        line = number(1, self._functions[function]) + number(2, location.line)
        return number(1, at) + number(2, self._programs[location.program]) + message(4, line)

    def _mapping(self, program: str, at: int) -> bytes:
        # Functions, files and lines are known: no viewer has to look for symbols.
        known = b"".join(number(flag, 1) for flag in (7, 8, 9, 10))
        return number(1, at) + number(5, self._texts[program]) + known

    def _function(self, function: _Function, at: int) -> bytes:
        name, file, first_line = function
        # The name of the system stays empty: pprof would take <module> for a template of C++.
        file_and_line = number(4, self._texts[file]) + number(5, first_line)
        return number(1, at) + number(2, self._texts[name]) + file_and_line
