"""Compiled programs as values: what ties them to one process, and their text."""

import struct
from dataclasses import replace

import pytest

from gilscope.bpf.compile.object import (
    Compiled,
    MapDefinition,
    from_json,
    renumbered,
    to_json,
    with_parameters,
)

_EXIT = struct.pack("<BBhi", 0x95, 0, 0, 0)
_HELPER_CALL = struct.pack("<BBhi", 0x85, 0, 0, 14)


def _load_64(source: int, number: int, upper: int = 0) -> bytes:
    return struct.pack("<BBhiBBhi", 0x18, 1 | source << 4, 0, number, 0, 0, 0, upper)


_COMPILED = Compiled(
    maps=(
        MapDefinition("targets", 1, 4, 40, 4096, 1),
        MapDefinition("notices", 27, 0, 0, 4096, 0),
        MapDefinition("maps", 13, 4, 4, 4096, 0, inner=0),
    ),
    programs={"on_wait": _load_64(1, 1) + _EXIT, "on_exec": _EXIT},
    tables=({"name": "targets", "key": {"size": 4, "fields": []}},),
    map_of={"targets": 0, "notices": 1},
    licence="GPL",
    bcc_version="0.26.0",
    parameters=("DISCOVER",),
)
_MARK = 0x67696C53
"""In the upper half of a number that stands for a parameter."""


def test_each_map_gets_its_new_number() -> None:
    """
    In the instructions that load the address of a map, and nowhere else.
    """
    before = _HELPER_CALL + _load_64(1, 5) + _load_64(0, 5, 5) + _load_64(1, 7) + _EXIT

    after = renumbered(before, {5: 7, 7: 5})

    assert _HELPER_CALL + _load_64(1, 7) + _load_64(0, 5, 5) + _load_64(1, 5) + _EXIT == after


def test_the_second_half_of_a_number_is_no_instruction() -> None:
    """
    Half a number may look like the load of a map.
    """
    halves = struct.unpack("<ii", struct.pack("<BBhi", 0x18, 0x11, 0, 5))
    code = struct.pack("<BBhi", 0x18, 1, 0, 0) + struct.pack("<ii", *halves) + _EXIT

    assert code == renumbered(code, {5: 7})


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (_load_64(1, 6), "no map has the number 6"),
        (_load_64(2, 5), "something else than a map"),
        (_load_64(4, 5), "something else than a map"),
        (struct.pack("<BBhi", 0x85, 0x10, 0, 5), "something else than a helper"),
        (_EXIT + _load_64(1, 5)[:8], "cut"),
        (_EXIT[:5], "cut"),
    ],
)
def test_what_else_ties_a_program_to_a_process_is_refused(code: bytes, words: str) -> None:
    """
    Numbers of unknown maps, values in maps, functions, and what is not whole.
    """
    with pytest.raises(ValueError, match=words):
        renumbered(code, {5: 7})


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        (0, 0, 0),
        (5, 5, 0),
        (0xEFFFFFFC, -0x10000004, 0),
        (-5, -5, -1),
        (0x123456789, 0x23456789, 1),
        (_MARK << 32, 0, _MARK),
    ],
)
def test_parameters_get_their_values(value: int, lower: int, upper: int) -> None:
    """
    Of 64 bits, in the instructions that load one, and nowhere else.
    """
    others = _load_64(1, 1) + _HELPER_CALL + _load_64(0, 1, 7)
    before = others + _load_64(0, 1, _MARK) + _load_64(0, 0, _MARK) + _EXIT

    after = with_parameters(before, (3, value))

    assert others + _load_64(0, lower, upper) + _load_64(0, 3) + _EXIT == after


def test_a_parameter_without_a_value_is_refused() -> None:
    """
    No program runs with what stands for a value.
    """
    with pytest.raises(ValueError, match="no parameter has the number 2"):
        with_parameters(_load_64(0, 2, _MARK), (0, 1))


def test_text_gives_the_programs_back() -> None:
    """
    All of it, to the byte.
    """
    assert _COMPILED == from_json(to_json(_COMPILED))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        to_json(_COMPILED).replace('"flags":1', '"flag":1'),
        to_json(_COMPILED).replace('"notices":1}', '"notices":3}'),
        to_json(_COMPILED).replace('"inner":0', '"inner":3'),
        to_json(replace(_COMPILED, programs={})).replace('"programs":{}', '"programs":[]'),
        to_json(_COMPILED).replace('"on_exec":"', '"on_exec":"!'),
    ],
)
def test_other_text_is_refused(text: str) -> None:
    """
    What lacks a part, names a map that is not there, or is no text of programs.
    """
    assert text != to_json(_COMPILED)
    with pytest.raises(ValueError):  # noqa: PT011 - of json, of base64 or of this module
        from_json(text)
