"""Reads profiles of pprof, by the numbers that ``profile.proto`` gives its fields."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Read", "Sample", "fields", "packed", "read"]


@dataclass(frozen=True)
class Sample:
    """One sample, with names in place of numbers."""

    stack: tuple[tuple[str, str, int, int], ...]
    """Function, file, first line, line; innermost first."""
    values: tuple[int, ...]
    labels: Mapping[str, str]
    programs: frozenset[str]


@dataclass(frozen=True)
class Read:
    """A profile."""

    types: Sequence[tuple[str, str]]
    default: str
    samples: Sequence[Sample]
    programs: Sequence[str]
    comments: Sequence[str]
    began_ns: int
    duration_ns: int
    period: tuple[str, int]

    def total(self, name: str) -> int:
        """Return the sum of one of the types over all samples."""
        at = [kind for kind, _ in self.types].index(name)
        return sum(sample.values[at] for sample in self.samples)


def read(compressed: bytes) -> Read:
    """Return the profile; raises where a number stands for nothing."""
    whole = _Message(gzip.decompress(compressed))
    texts = [content.decode() for content in whole.messages(6)]
    assert texts[0] == ""
    functions = {
        each.number(1): (texts[each.number(2)], texts[each.number(4)], each.number(5))
        for each in map(_Message, whole.messages(5))
    }
    programs = {each.number(1): texts[each.number(5)] for each in map(_Message, whole.messages(3))}
    locations = {}
    for each in map(_Message, whole.messages(4)):
        line = _Message(each.messages(4)[0])
        place = (*functions[line.number(1)], line.number(2))
        locations[each.number(1)] = place, programs[each.number(2)]
    samples = []
    for each in map(_Message, whole.messages(2)):
        labels = map(_Message, each.messages(3))
        found = [locations[number] for number in each.numbers(1)]
        samples.append(
            Sample(
                tuple(place for place, _ in found),
                tuple(each.numbers(2)),
                {texts[label.number(1)]: texts[label.number(2)] for label in labels},
                frozenset(program for _, program in found),
            )
        )
    types = [
        (texts[each.number(1)], texts[each.number(2)]) for each in map(_Message, whole.messages(1))
    ]
    period = whole.messages(11)
    return Read(
        types=types,
        default=texts[whole.number(14)],
        samples=samples,
        programs=list(programs.values()),
        comments=[texts[number] for number in whole.numbers(13)],
        began_ns=whole.number(9),
        duration_ns=whole.number(10),
        period=(texts[_Message(period[0]).number(1)] if period else "", whole.number(12)),
    )


class _Message:
    """The fields of one message by their numbers."""

    def __init__(self, content: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in fields(content):
            self._fields.setdefault(number, []).append(value)

    def number(self, field: int) -> int:
        """Return a number; 0 where it is left out."""
        (value,) = self._fields.get(field, [0])
        assert isinstance(value, int)
        return value

    def numbers(self, field: int) -> list[int]:
        """Return a packed list of numbers."""
        return [number for content in self.messages(field) for number in packed(content)]

    def messages(self, field: int) -> list[bytes]:
        """Return what is repeated."""
        return [value for value in self._fields.get(field, []) if isinstance(value, bytes)]


def fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each field of a message: its number, and its value."""
    left = content
    while left:
        tag, left = _varint(left)
        value, left = _varint(left)
        if tag & 7 == 0:
            yield tag >> 3, value
        else:
            assert (tag & 7, True) == (2, value <= len(left))
            yield tag >> 3, left[:value]
            left = left[value:]


def packed(content: bytes) -> Iterator[int]:
    """Yield the numbers of a packed list."""
    left = content
    while left:
        number, left = _varint(left)
        yield number


def _varint(content: bytes) -> tuple[int, bytes]:
    value = 0
    for at, byte in enumerate(content):
        value |= (byte & 0x7F) << 7 * at
        if not byte & 0x80:
            return value, content[at + 1 :]
    raise ValueError("a number does not end")
