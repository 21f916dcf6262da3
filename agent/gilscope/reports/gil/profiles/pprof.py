"""A profile in the format of pprof, ``profile.proto``, which many viewers and stores read.

Texts, functions, locations and mappings are written once each, and known by number.
"""

import gzip
from collections.abc import Iterable, Sequence

from gilscope.model.gil import Recording
from gilscope.model.locks import LockRecording
from gilscope.model.transactions import StmRecording
from gilscope.reports.gil.profiles.content import profile_of
from gilscope.reports.gil.profiles.profile import (
    Function,
    Location,
    Numbers,
    Profile,
    SampleKey,
    ValueType,
)
from gilscope.text.protobuf import element, message, number, numbers

__all__ = ["encoded", "render"]


def render(
    *recordings: Recording,
    transactions: Sequence[StmRecording] = (),
    locks: Sequence[LockRecording] = (),
) -> bytes:
    """Return the profile, compressed by gzip; of several recordings, labels say the process."""
    # Without the time at which it is made: the same recording is the same file.
    profile = profile_of(*recordings, transactions=transactions, locks=locks)
    return gzip.compress(encoded(profile), mtime=0)


def encoded(profile: Profile) -> bytes:
    """Return *profile* as one message, not compressed: once all of its samples are known."""
    return _Writer(profile).content(profile.samples())


class _Writer:
    """Numbers what a profile refers to. Zero is the number of the empty text alone."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._texts: Numbers[str] = Numbers(0)
        self._programs: Numbers[str] = Numbers(1)
        self._functions: Numbers[Function] = Numbers(1)
        self._locations: Numbers[Location] = Numbers(1)
        self._texts[""]

    def content(self, samples: Iterable[tuple[SampleKey, Sequence[int]]]) -> bytes:
        """Return the profile with *samples*."""
        profile, text = self._profile, self._texts
        period_type = profile.period_type
        parts = [
            *(element(1, self._type(kind)) for kind in profile.types),
            *(element(2, self._sample(*sample)) for sample in samples),
            # In this order: each refers to what comes after it.
            *(element(4, self._location(*each)) for each in self._locations.items()),
            *(element(3, self._mapping(*each)) for each in self._programs.items()),
            *(element(5, self._function(*each)) for each in self._functions.items()),
            number(9, profile.began_ns),
            number(10, profile.duration_ns),
            message(11, self._type(period_type) if period_type else b""),
            number(12, profile.period),
            numbers(13, [text[comment] for comment in profile.comments]),
            number(14, text[profile.default.name]),
            # Last, for then all of them are known.
            *(element(6, each.encode()) for each in text),
        ]
        return b"".join(parts)

    def _type(self, kind: ValueType) -> bytes:
        return number(1, self._texts[kind.name]) + number(2, self._texts[kind.unit])

    def _sample(self, key: SampleKey, values: Sequence[int]) -> bytes:
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
        line = number(1, self._functions[location.defined]) + number(2, location.line)
        return number(1, at) + number(2, self._programs[location.program]) + message(4, line)

    def _mapping(self, program: str, at: int) -> bytes:
        # Functions, files and lines are known: no viewer has to look for symbols.
        known = b"".join(number(flag, 1) for flag in (7, 8, 9, 10))
        return number(1, at) + number(5, self._texts[program]) + known

    def _function(self, function: Function, at: int) -> bytes:
        name, file, first_line = function
        # The name of the system stays empty: pprof would take <module> for a template of C++.
        file_and_line = number(4, self._texts[file]) + number(5, first_line)
        return number(1, at) + number(2, self._texts[name]) + file_and_line
