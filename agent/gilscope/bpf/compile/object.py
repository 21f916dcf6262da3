"""Compiled BPF programs as values: instructions, the maps that they use, and how to load them.

An instruction that loads the address of a map carries a number: a descriptor where it is handed to
the kernel, and the place in `Compiled.maps` where it is kept. In programs that were compiled ahead,
one that loads a parameter carries its place in `Compiled.parameters`, with a mark.
"""

import base64
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gilscope.values import dataclass

__all__ = [
    "Compiled",
    "MapDefinition",
    "from_json",
    "renumbered",
    "to_json",
    "with_parameters",
]

# struct bpf_insn: operation, registers (source in the high half), offset, immediate.
_INSTRUCTION = struct.Struct("<BBhi")
_LOAD_64 = 0x18
"""BPF_LD | BPF_IMM | BPF_DW, the one instruction that takes the room of two."""
_PLAIN, _MAP = 0, 1
"""Its sources: a number, or BPF_PSEUDO_MAP_FD."""
_PARAMETER_MARK = 0x67696C53
"""The upper half of a number that is to be replaced: PARAMETER_MARK of ``configuration.bpf.h``."""
_UPPER_HALF = struct.Struct("<12xI")
_CALL = 0x85
_LOADS_AND_CALLS = frozenset((_LOAD_64, _CALL))
_HELPER = 0


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """What the kernel makes a map from."""

    name: str
    """Its first 15 characters."""
    type: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    inner: int | None = None
    """Of a map of maps: the place, among all of them, of one that is like those in it."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """All programs of one request."""

    maps: tuple[MapDefinition, ...]
    programs: Mapping[str, bytes]
    """Name to instructions."""
    tables: tuple[Mapping[str, Any], ...]
    """Each its name, and the layouts of its key and value as ``bcc_child`` describes them."""
    map_of: Mapping[str, int]
    """Name of a table or a ring to its place in *maps*."""
    licence: str
    bcc_version: str
    """Of what compiled them."""
    parameters: tuple[str, ...] = ()
    """Names of those that the instructions have places for."""


def renumbered(instructions: bytes, numbers: Mapping[int, int]) -> bytes:
    """Return *instructions* with the number n of each map replaced by *numbers* [n].

    Raises ValueError where that is not all that ties them to one process.
    """
    changed = bytearray(instructions)
    for position, operation, registers, offset, number in _loads_and_calls(instructions):
        source = registers >> 4
        if operation == _CALL and source != _HELPER:
            raise ValueError("a call of something else than a helper")
        if operation == _LOAD_64 and source == _MAP:
            if number not in numbers:
                raise ValueError(f"no map has the number {number}")
            _INSTRUCTION.pack_into(changed, position, operation, registers, offset, numbers[number])
        elif operation == _LOAD_64 and source != _PLAIN:
            raise ValueError(f"the address of something else than a map ({source})")
    return bytes(changed)


def with_parameters(instructions: bytes, values: Sequence[int]) -> bytes:
    """Return *instructions* with *values* [n] where the parameter n is loaded.

    Values have 64 bits, of either sign. Raises ValueError where there is no such parameter.
    """
    changed = bytearray(instructions)
    for position, operation, registers, _, place in _loads_and_calls(instructions):
        if operation != _LOAD_64 or registers >> 4 != _PLAIN:
            continue
        if _UPPER_HALF.unpack_from(instructions, position)[0] != _PARAMETER_MARK:
            continue
        if place not in range(len(values)):
            raise ValueError(f"no parameter has the number {place}")
        value = values[place]
        for at, half in ((4, value), (12, value >> 32)):
            struct.pack_into("<I", changed, position + at, half & 0xFFFFFFFF)
    return bytes(changed)


def _loads_and_calls(instructions: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the position and the fields of each instruction that loads 64 bits, or calls.

    Every start looks through some ten thousand that are neither.
    """
    count, rest = divmod(len(instructions), _INSTRUCTION.size)
    if rest:
        raise ValueError("the last instruction is cut")
    words = struct.unpack(f"<{count}Q", instructions)
    second_half = -1
    for place in [place for place, word in enumerate(words) if word & 0xFF in _LOADS_AND_CALLS]:
        if place == second_half:
            continue
        position = place * _INSTRUCTION.size
        fields = _INSTRUCTION.unpack_from(instructions, position)
        if fields[0] == _LOAD_64:
            second_half = place + 1
            if second_half == count:
                raise ValueError("the last instruction is cut")
        yield (position, *fields)


def to_json(compiled: Compiled) -> str:
    """Return *compiled* as text."""
    document = {
        "maps": [asdict(definition) for definition in compiled.maps],
        "programs": {
            name: base64.b64encode(instructions).decode()
            for name, instructions in compiled.programs.items()
        },
        "tables": list(compiled.tables),
        "map_of": dict(compiled.map_of),
        "licence": compiled.licence,
        "bcc_version": compiled.bcc_version,
        "parameters": compiled.parameters,
    }
    return json.dumps(document, separators=(",", ":"))


def from_json(text: str) -> Compiled:
    """Return what `to_json` has made *text* from; raises ValueError."""
    document = json.loads(text)
    try:
        maps = tuple(MapDefinition(**definition) for definition in document["maps"])
        for definition in maps:
            if definition.inner is not None:
                _place(definition.inner, maps)
        return Compiled(
            maps=maps,
            programs={
                name: base64.b64decode(instructions, validate=True)
                for name, instructions in document["programs"].items()
            },
            tables=tuple(document["tables"]),
            map_of={name: _place(place, maps) for name, place in document["map_of"].items()},
            licence=document["licence"],
            bcc_version=document["bcc_version"],
            parameters=tuple(document["parameters"]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not compiled programs: {error!r}") from None


def _place(place: int, maps: Sequence[MapDefinition]) -> int:
    if place not in range(len(maps)):
        raise ValueError(f"no map has the number {place}")
    return place
