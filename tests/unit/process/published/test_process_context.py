"""What a process says of itself to readers outside of it."""

import importlib
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from gilscope.process.memory import ProcessMemory
from gilscope.process.published.messages import parts
from gilscope.process.published.process_context import (
    ProcessContext,
    mapped_at,
    parse_process_context,
    read_process_context,
    route_key,
)
from gilscope.process.remote_read import TornRead
from support.paths import WORKLOADS

_KEYS = ("thread.name", "http.route")


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def _keys(*names: str) -> KeyValue:
    values = ArrayValue(values=[AnyValue(string_value=name) for name in names])
    key = "threadlocal.attribute_key_map"
    return KeyValue(key=key, value=AnyValue(array_value=values))


def _message(*attributes: KeyValue, service: str = "shop") -> bytes:
    number = KeyValue(key="process.pid", value=AnyValue(int_value=7))
    ratio = KeyValue(key="some.ratio", value=AnyValue(double_value=0.5))
    resource = Resource(
        attributes=[number, _text("service.name", service), ratio], dropped_attributes_count=3
    )
    content = resource.SerializeToString()
    size = bytes([len(content) & 127 | 128, len(content) >> 7])
    own = b"".join(_field(2, each.SerializeToString()) for each in attributes)
    return bytes(b"\x0a" + size + content + own)


def _maps() -> bytes:
    return Path("/proc/self/maps").read_bytes()


@pytest.fixture
def published() -> Iterator[None]:
    """Publish one of this very process."""
    sys.path.insert(0, str(WORKLOADS))
    try:
        module = importlib.import_module("process_context")
    finally:
        sys.path.remove(str(WORKLOADS))
    kept = module.publish_process_context("shop", _KEYS)
    yield
    kept.close()


def test_service_and_attributes_are_read() -> None:
    """
    As the messages of OpenTelemetry have them; what else is there is passed over.
    """
    keys = _keys("thread.name", "http.route")
    said = parse_process_context(_message(_text("threadlocal.schema_version", "v1"), keys))

    assert ProcessContext("shop", ("thread.name", "http.route")) == said


def test_what_is_not_said_is_not_known() -> None:
    """
    A service without a name is none; a name that is no text keeps its place.
    """
    odd = ArrayValue(values=[AnyValue(int_value=1), AnyValue(string_value="http.route")])
    key = "threadlocal.attribute_key_map"
    value = KeyValue(key=key, value=AnyValue(array_value=odd))

    assert ProcessContext(None, ()) == parse_process_context(b"")
    assert ProcessContext(None, ("", "http.route")) == parse_process_context(
        _message(value, service="")
    )


@pytest.mark.parametrize(
    "content",
    [b"\x0a", b"\x0a\x05abc", b"\x0f", b"\x0a\x03\x0a\x01\xff", b"\xff" * 11, b"\x09abc"],
)
def test_what_is_no_message_is_torn(content: bytes) -> None:
    """
    Cut, of types that there are not, with numbers that do not end, or with text that is none.
    """
    with pytest.raises(TornRead):
        parse_process_context(content)


def test_numbers_of_all_sizes_are_passed_over() -> None:
    """
    Those of varying length, and those of four and of eight bytes.
    """
    content = b"\x08\x96\x01" + b"\x0d" + bytes(4) + b"\x09" + bytes(8) + _field(3, b"end")

    assert [(3, b"end")] == list(parts(content))


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        ((), None),
        (("thread.name",), None),
        (("a", "http.route"), 1),
        (("datadog.trace_endpoint", "http_route"), 1),
        (("datadog.local_root_span_id", "datadog.trace_endpoint"), 1),
        (("http.route", "http.route"), 0),
    ],
)
def test_which_attribute_has_the_route(keys: tuple[str, ...], number: int | None) -> None:
    """
    By the names that tracers give it, in the order of their plainness.
    """
    assert number == route_key(keys)


def test_mappings_have_their_names() -> None:
    """
    With and without a file, whether that has a name of its own or not.
    """
    maps = (
        b"1000-2000 rw-p 00000000 00:01 7 /memfd:OTEL_CTX (deleted)\n"
        b"3000-4000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n"
        b"5000-6000 r--p 00000000 00:01 9 [anon_shmem:OTEL_CTX]\n"
        b"7000-8000 rw-p 00000000 00:01 9 /tmp/OTEL_CTX\n"
        b"9000-a000 ---p 00000000 00:01 9 /memfd:OTEL_CTX\n"
    )

    assert [0x1000, 0x3000, 0x5000] == list(mapped_at(maps))


@pytest.mark.usefixtures("published")
def test_a_process_that_publishes_is_read() -> None:
    """
    This very process, as OTEP 4719 has it.
    """
    with ProcessMemory(os.getpid()) as memory:
        assert ProcessContext("shop", _KEYS) == read_process_context(memory, _maps())


def test_a_process_that_does_not_is_not() -> None:
    """
    Nor is one with a mapping of that name and something else in it.
    """
    descriptor = os.memfd_create("OTEL_CTX")
    os.ftruncate(descriptor, 4096)
    with ProcessMemory(os.getpid()) as memory:
        assert read_process_context(memory, _maps()) is None


@pytest.mark.parametrize(("field", "value"), [(16, 0), (12, 1 << 20)])
@pytest.mark.usefixtures("published")
def test_one_that_is_being_written_is_torn(field: int, value: int) -> None:
    """
    It has no time then; one that is far too large is none.
    """
    (address,) = mapped_at(_maps())

    class Memory:
        def read(self, at: int, size: int) -> bytes:
            with ProcessMemory(os.getpid()) as memory:
                content = bytearray(memory.read(at, size))
            if at == address:
                width = "<Q" if field == 16 else "<I"
                struct.pack_into(width, content, field, value)
            return bytes(content)

    with pytest.raises(TornRead, match="being written"):
        read_process_context(Memory(), _maps())
