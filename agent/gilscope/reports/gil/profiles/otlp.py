"""The waits of a recording as profiles of OTLP, in the JSON form of its messages.

These are of ``v1development``, an alpha, with one dictionary for all that profiles refer to. The
text is a request as it is sent to ``/v1development/profiles``, in one line, which is also how
OpenTelemetry has such files.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import gilscope
from gilscope.exporter.otlp import attributes
from gilscope.model.gil import Recording
from gilscope.reports.gil.profiles.content import profile_of
from gilscope.reports.gil.profiles.profile import (
    Function,
    Location,
    Numbers,
    Profile,
    ValueType,
)
from gilscope.text.printable import printable

__all__ = ["render"]

_Item = dict[str, Any]
_Value = str | tuple[str, ...]
_Attribute = tuple[str, _Value]
_OF_RESOURCE = {"process", "pid"}
"""Labels that the resource says, for all of its samples."""
_COMMENT = "pprof.profile.comment"
"""The attribute that OpenTelemetry has for it."""


def render(*recordings: Recording) -> str:
    """Return the request, with a resource for each process."""
    dictionary = _Dictionary()
    request = {
        "resourceProfiles": [_resource(each, dictionary) for each in recordings],
        "dictionary": dictionary.tables(),
    }
    return json.dumps(request, separators=(",", ":"), allow_nan=False) + "\n"


class _Dictionary:
    """What profiles refer to by number. Zero is nothing, in each of its tables."""

    def __init__(self) -> None:
        self.texts: Numbers[str] = Numbers(0)
        self.attributes: Numbers[_Attribute] = Numbers(1)
        self.stacks: Numbers[tuple[Location, ...]] = Numbers(1)
        self._locations: Numbers[Location] = Numbers(1)
        self._functions: Numbers[Function] = Numbers(1)
        self._programs: Numbers[str] = Numbers(1)
        self.texts[""]

    def tables(self) -> _Item:
        """Return all of it, once everything is in it."""
        # In this order: each refers to what comes after it.
        tables = {
            "stackTable": _table(map(self._stack, self.stacks)),
            "locationTable": _table(map(self._location, self._locations)),
            "functionTable": _table(map(self._function, self._functions)),
            "mappingTable": _table(map(self._mapping, self._programs)),
            "attributeTable": _table(map(self._attribute, self.attributes)),
            "linkTable": _table(()),
        }
        return {**tables, "stringTable": list(self.texts)}

    def type(self, kind: ValueType) -> _Item:
        """Return the numbers of both of its names."""
        return {"typeStrindex": self.texts[kind.name], "unitStrindex": self.texts[kind.unit]}

    def _stack(self, stack: Sequence[Location]) -> _Item:
        return {"locationIndices": [self._locations[location] for location in stack]}

    def _location(self, location: Location) -> _Item:
        line = {"functionIndex": self._functions[location.defined], "line": str(location.line)}
        return {"mappingIndex": self._programs[location.program], "lines": [line]}

    def _function(self, function: Function) -> _Item:
        name, file, first_line = function
        return {
            "nameStrindex": self.texts[name],
            "filenameStrindex": self.texts[file],
            "startLine": str(first_line),
        }

    def _mapping(self, program: str) -> _Item:
        return {"filenameStrindex": self.texts[program]}

    def _attribute(self, attribute: _Attribute) -> _Item:
        name, value = attribute
        return {"keyStrindex": self.texts[name], "value": _value(value)}


def _table(items: Iterable[_Item]) -> list[_Item]:
    return [{}, *items]


def _value(value: _Value) -> _Item:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value(each) for each in value]}}


def _resource(recording: Recording, dictionary: _Dictionary) -> _Item:
    profile, process = profile_of(recording), recording.observation.process
    about: dict[str, str | int | None] = {
        "service.name": printable(process.name),
        "process.pid": process.pid,
        "process.runtime.name": process.runtime,
        "process.runtime.version": process.python,
        "container.id": process.container_id,
        "k8s.pod.uid": process.pod_uid,
        "host.name": printable(recording.host),
    }
    scope = {"name": "gilscope", "version": gilscope.__version__}
    return {
        "resource": {"attributes": attributes(about)},
        "scopeProfiles": [{"scope": scope, "profiles": list(_profiles(profile, dictionary))}],
    }


def _profiles(profile: Profile, dictionary: _Dictionary) -> Iterator[_Item]:
    """Yield one for each type of which there is something; what viewers show first comes first."""
    comments = dictionary.attributes[_COMMENT, tuple(profile.comments)]
    common = {
        "timeUnixNano": str(profile.began_ns),
        "durationNano": str(profile.duration_ns),
        "attributeIndices": [comments],
    }
    for kind in sorted(profile.types, key=lambda kind: kind != profile.default):
        samples = list(_samples(profile, profile.types.index(kind), dictionary))
        # One is there in any case: it says why there is nothing.
        if samples or kind == profile.default:
            period = _period(profile, kind, dictionary)
            yield {"sampleType": dictionary.type(kind), "samples": samples, **common, **period}


def _period(profile: Profile, kind: ValueType, dictionary: _Dictionary) -> _Item:
    if profile.period_type != kind or not profile.period:
        return {}
    return {"periodType": dictionary.type(kind), "period": str(profile.period)}


def _samples(profile: Profile, at: int, dictionary: _Dictionary) -> Iterator[_Item]:
    for (stack, labels), values in profile.samples():
        if values[at]:
            told = (label for label in labels if label[0] not in _OF_RESOURCE)
            yield {
                "stackIndex": dictionary.stacks[stack],
                "attributeIndices": [dictionary.attributes[label] for label in told],
                "values": [str(values[at])],
            }
