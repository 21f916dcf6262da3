"""Programs that were compiled ahead: when they are taken, and what is put into them."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gilscope.bpf.compile.ahead import (
    ahead_file,
    ahead_message,
    find_ahead,
    for_request,
    write_ahead,
)
from gilscope.bpf.compile.object import Compiled, MapDefinition, from_json, to_json
from gilscope.bpf.map import RecordLayout
from gilscope.bpf.request import Request

_TEXT = "int on_exec(void *ctx) { return PARAMETER(DISCOVER); }"
_MARK = 0x67696C53
_RECORD: dict[str, Any] = {"size": 4, "fields": []}
_REQUEST = Request(
    probe="some.bpf.c",
    constants={"GIL_MUTEX_OFFSET": 48},
    parameters={"TIMELINE": 1, "CLOCK_OFFSET_NS": -3, "DISCOVER": 2},
    entries={"targets": 4096, "locks": 7, "notices": 2},
    table_flags=1,
    programs={"on_exec": "raw_tracepoint"},
    tables=("targets", "locks"),
    rings={"notices": RecordLayout(0, ())},
)


def _load(number: int, upper: int) -> bytes:
    return struct.pack("<BBhiBBhi", 0x18, 1, 0, number, 0, 0, 0, upper)


_COMPILED = Compiled(
    maps=(
        MapDefinition("targets", 1, 4, 40, 1, 0),
        MapDefinition("locks", 2, 4, 40, 1, 0),
        MapDefinition("notices", 27, 0, 0, 4096, 0),
        MapDefinition("spans", 27, 0, 0, 4096, 0),
        MapDefinition("settings", 2, 4, 8, 1, 0),
        MapDefinition("sent_stacks", 9, 4, 8, 1, 0),
    ),
    programs={
        # In the order of their names: CLOCK_OFFSET_NS, DISCOVER, TIMELINE.
        "on_exec": _load(0, _MARK) + _load(1, _MARK) + _load(2, _MARK),
        "on_fork": _load(0, 0),
    },
    tables=tuple(
        {"name": name, "key": _RECORD, "value": _RECORD}
        for name in ("targets", "locks", "settings", "sent_stacks")
    ),
    map_of={
        "targets": 0,
        "locks": 1,
        "notices": 2,
        "spans": 3,
        "settings": 4,
        "sent_stacks": 5,
    },
    licence="GPL",
    bcc_version="0.26.0",
)


def test_what_is_compiled_ahead_knows_no_values() -> None:
    """
    Parameters are numbered by their names; sizes and flags are none; nothing is to be loaded.
    """
    message = ahead_message(_REQUEST, _TEXT)

    assert {"on_exec": None} == message["programs"]
    assert {
        "-DCOMPILED_AHEAD=1",
        "-DGIL_MUTEX_OFFSET=48",
        "-DCLOCK_OFFSET_NS=0",
        "-DDISCOVER=1",
        "-DTIMELINE=2",
        "-DENTRIES_OF_targets=1",
        "-DENTRIES_OF_locks=1",
        "-DENTRIES_OF_notices=1",
        "-DTABLE_FLAGS=0",
    } == set(message["cflags"])


def test_a_request_puts_its_values_in(tmp_path: Path) -> None:
    """
    Parameters, sizes (a ring's in bytes), and flags of hash tables; what is not asked for is left.
    """
    write_ahead(_COMPILED, _REQUEST, _TEXT, tmp_path)
    found = find_ahead(_REQUEST, _TEXT, tmp_path)
    assert found is not None

    made = for_request(found, _REQUEST)

    assert {"on_exec": _load(-3, -1) + _load(2, 0) + _load(1, 0)} == made.programs
    assert (
        MapDefinition("targets", 1, 4, 40, 4096, 1),
        MapDefinition("locks", 2, 4, 40, 7, 0),
        MapDefinition("notices", 27, 0, 0, 8192, 0),
        *_COMPILED.maps[3:],
    ) == made.maps
    assert {"targets": 0, "locks": 1, "notices": 2} == made.map_of
    assert ["targets", "locks"] == [table["name"] for table in made.tables]
    assert ("GPL", "0.26.0") == (made.licence, made.bcc_version)


def test_other_values_are_no_reason_to_compile(tmp_path: Path) -> None:
    """
    They are put in.
    """
    write_ahead(_COMPILED, _REQUEST, _TEXT, tmp_path)
    other = replace(
        _REQUEST,
        parameters=dict.fromkeys(_REQUEST.parameters, 9),
        entries=dict.fromkeys(_REQUEST.entries, 9),
        table_flags=0,
    )
    found = find_ahead(other, _TEXT, tmp_path)
    assert found is not None

    assert {"on_exec": _load(9, 0) * 3} == for_request(found, other).programs


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (f"{_TEXT} ", {}),
        (_TEXT, {"constants": {"GIL_MUTEX_OFFSET": 40}}),
        (_TEXT, {"parameters": {"TIMELINE": 1}}),
        (_TEXT, {"entries": {"targets": 4096}}),
        (_TEXT, {"probe": "other.bpf.c"}),
    ],
)
def test_programs_of_other_sources_are_not_taken(
    tmp_path: Path, text: str, changes: dict[str, Any]
) -> None:
    """
    Of another text, with other constants, or with other names for what is put in.
    """
    write_ahead(_COMPILED, _REQUEST, _TEXT, tmp_path)

    assert find_ahead(_REQUEST, _TEXT, tmp_path) is not None
    assert find_ahead(replace(_REQUEST, **changes), text, tmp_path) is None


def test_damaged_programs_are_not_taken(tmp_path: Path) -> None:
    """
    Nor those that are cut, nor where there are none.
    """
    assert find_ahead(_REQUEST, _TEXT, tmp_path) is None
    path = write_ahead(_COMPILED, _REQUEST, _TEXT, tmp_path)
    whole = path.read_text()

    assert path == ahead_file(_REQUEST, tmp_path)
    for text in ("", whole[:-1], whole.replace("targets", "Targets"), "\x00"):
        path.write_text(text)
        assert find_ahead(_REQUEST, _TEXT, tmp_path) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"programs": {"on_wait": "uprobe"}},
        {"tables": ("gils",)},
        {"rings": {"stacks": RecordLayout(0, ())}},
        {"entries": {"gils": 1}},
        {"parameters": {}},
    ],
)
def test_what_was_not_compiled_is_not_made_up(changes: dict[str, Any]) -> None:
    """
    A program, a table, a ring, a size or a value that is missing.
    """
    compiled = from_json(to_json(replace(_COMPILED, parameters=tuple(sorted(_REQUEST.parameters)))))

    with pytest.raises(ValueError, match="nothing was compiled ahead for"):
        for_request(compiled, replace(_REQUEST, **changes))
