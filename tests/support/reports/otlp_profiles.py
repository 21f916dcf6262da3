"""Reads profiles of OTLP with OpenTelemetry's own messages, and follows what they refer to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.profiles.v1development import profiles_pb2

from support.reports.pprof import Sample

__all__ = ["Read", "profiles_in", "read", "request_in"]


@dataclass(frozen=True)
class Read:
    """One profile, with names in place of numbers."""

    resource: Mapping[str, Any]
    type: tuple[str, str]
    samples: Sequence[Sample]
    comments: Sequence[str]
    began_ns: int
    duration_ns: int
    period: tuple[str, int]

    @property
    def total(self) -> int:
        """The sum over all samples."""
        return sum(sum(sample.values) for sample in self.samples)


def read(text: str | bytes) -> list[Read]:
    """Return the profiles of a request in JSON."""
    return profiles_in(request_in(text))


def request_in(text: str | bytes) -> ExportProfilesServiceRequest:
    """Return the request that *text* is, in JSON; raises what is not as in its messages."""
    request = ExportProfilesServiceRequest()
    json_format.Parse(text, request)
    return request


def profiles_in(request: ExportProfilesServiceRequest) -> list[Read]:
    """Return all profiles; raises where a number stands for nothing, or zero for something."""
    names = _Names(request.dictionary)
    return [
        names.profile(profile, of.resource.attributes)
        for of in request.resource_profiles
        for scope in of.scope_profiles
        for profile in scope.profiles
    ]


class _Names:
    """What is in the dictionary."""

    def __init__(self, dictionary: profiles_pb2.ProfilesDictionary) -> None:
        # A Collector writes the value of an attribute even if it is none.
        for first in _firsts(dictionary):
            assert json_format.MessageToDict(first) in ({}, {"value": {}})
        assert "" == dictionary.string_table[0]
        self._of = dictionary
        self._texts = dictionary.string_table

    def profile(self, profile: profiles_pb2.Profile, resource: Iterable[Any]) -> Read:
        """Return *profile* of the process with the attributes *resource*."""
        comments = self._attributes(profile.attribute_indices)["pprof.profile.comment"]
        return Read(
            dict(map(self._attribute, resource)),
            self._type(profile.sample_type),
            [self._sample(sample) for sample in profile.samples],
            comments,
            profile.time_unix_nano,
            profile.duration_nano,
            (self._type(profile.period_type)[0], profile.period),
        )

    def _type(self, kind: profiles_pb2.ValueType) -> tuple[str, str]:
        return self._texts[kind.type_strindex], self._texts[kind.unit_strindex]

    def _sample(self, sample: profiles_pb2.Sample) -> Sample:
        stack = self._of.stack_table[sample.stack_index]
        locations = [self._of.location_table[number] for number in stack.location_indices]
        programs = (self._of.mapping_table[each.mapping_index] for each in locations)
        return Sample(
            tuple(map(self._place, locations)),
            tuple(sample.values),
            self._attributes(sample.attribute_indices),
            frozenset(self._texts[each.filename_strindex] for each in programs),
        )

    def _place(self, location: profiles_pb2.Location) -> tuple[str, str, int, int]:
        (line,) = location.lines
        function = self._of.function_table[line.function_index]
        name, file = self._texts[function.name_strindex], self._texts[function.filename_strindex]
        return name, file, function.start_line, line.line

    def _attributes(self, numbers: Iterable[int]) -> dict[str, Any]:
        found = [self._of.attribute_table[number] for number in numbers]
        return dict(map(self._attribute, found))

    def _attribute(self, attribute: Any) -> tuple[str, Any]:
        # Those of a resource may have a name of their own, which a Collector changes to a number.
        name = getattr(attribute, "key", "") or self._texts[attribute.key_strindex]
        return name, self._value(attribute.value)

    def _value(self, value: AnyValue) -> Any:
        if value.WhichOneof("value") == "array_value":
            return [self._value(each) for each in value.array_value.values]
        return value.int_value or value.string_value or self._texts[value.string_value_strindex]


def _firsts(dictionary: profiles_pb2.ProfilesDictionary) -> list[Any]:
    tables = (
        *(dictionary.stack_table, dictionary.location_table, dictionary.function_table),
        *(dictionary.mapping_table, dictionary.attribute_table, dictionary.link_table),
    )
    return [table[0] for table in tables]
