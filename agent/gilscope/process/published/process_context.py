"""What a process says of itself to readers outside of it: its service, and names of attributes.

That is the process context of OpenTelemetry (OTEP 4719): a mapping whose name is known has a header
that leads to a message, which is read again where the process has changed it meanwhile.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from gilscope.process.published.messages import parts, text
from gilscope.process.remote_read import Memory, TornRead, read_bytes
from gilscope.values import dataclass

__all__ = [
    "ProcessContext",
    "mapped_at",
    "parse_process_context",
    "read_process_context",
    "route_key",
]

_NAME: Final = re.compile(
    rb"^([0-9a-f]+)-\S+ r\S+ \S+ \S+ \d+ +"
    rb"(?:\[anon(?:_shmem)?:OTEL_CTX\]|/memfd:OTEL_CTX)",
    re.MULTILINE,
)
_HEADER: Final = struct.Struct("<8sIIQQ")
_SIGNATURE: Final = b"OTEL_CTX"
_VERSION: Final = 2
_MOST_BYTES: Final = 1 << 16

_RESOURCE, _ATTRIBUTES = 1, 2
_KEY, _VALUE = 1, 2
_STRING, _ARRAY, _ELEMENT = 1, 5, 1

_SERVICE: Final = "service.name"
_KEY_MAP: Final = "threadlocal.attribute_key_map"
_ROUTES: Final = ("http.route", "http_route", "datadog.trace_endpoint")
"""What tracers call the route of a request: the first of them that there is."""


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What is read of it."""

    service: str | None
    attribute_keys: tuple[str, ...]
    """The names of the attributes that requests may have, by their numbers."""


def read_process_context(memory: Memory, maps: bytes) -> ProcessContext | None:
    """Return what a process says that has *memory*, None where it says nothing.

    *maps* is the text of its /proc/PID/maps. Raises TornRead where what it says is being changed or
    is of another form, and OSError where the process has gone.
    """
    for address in mapped_at(maps):
        header = read_bytes(memory, address, _HEADER.size)
        signature, version, size, published_ns, payload = _HEADER.unpack(header)
        if signature != _SIGNATURE or version != _VERSION:
            continue
        if not published_ns or size > _MOST_BYTES:
            raise TornRead("the process context is being written")
        content = read_bytes(memory, payload, size)
        if read_bytes(memory, address, _HEADER.size) != header:
            raise TornRead("the process context has been changed")
        return parse_process_context(content)
    return None


def mapped_at(maps: bytes) -> Iterator[int]:
    """Yield where in the text of /proc/PID/maps a process context may be."""
    return (int(found[1], 16) for found in _NAME.finditer(maps))


def parse_process_context(content: bytes) -> ProcessContext:
    """Return what the message says; raises TornRead where it is none."""
    service: str | None = None
    keys: tuple[str, ...] = ()
    for name, value in _attributes(content):
        if name == _SERVICE:
            service = next((text(part) for field, part in parts(value) if field == _STRING), None)
        elif name == _KEY_MAP:
            keys = tuple(_strings(value))
    return ProcessContext(service or None, keys)


def route_key(keys: Iterable[str]) -> int | None:
    """Return the number of the attribute that has the route of a request, if there is one."""
    numbers = {name: number for number, name in reversed(list(enumerate(keys)))}
    return next((numbers[name] for name in _ROUTES if name in numbers), None)


def _attributes(content: bytes) -> Iterator[tuple[str, bytes]]:
    for field, part in parts(content):
        if field == _ATTRIBUTES:
            yield _attribute(part)
        elif field == _RESOURCE:
            yield from (_attribute(inner) for number, inner in parts(part) if number == 1)


def _attribute(content: bytes) -> tuple[str, bytes]:
    fields = dict(parts(content))
    return text(fields.get(_KEY, b"")), fields.get(_VALUE, b"")


def _strings(value: bytes) -> Iterator[str]:
    for field, array in parts(value):
        if field == _ARRAY:
            for number, element in parts(array):
                if number == _ELEMENT:
                    # An element that is no text keeps its place.
                    yield next((text(one) for kind, one in parts(element) if kind == _STRING), "")
