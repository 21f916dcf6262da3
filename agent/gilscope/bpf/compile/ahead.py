"""Programs that were compiled when gilscope was built, once for all machines.

They load parameters where programs that are compiled for one run have constants, and their tables
get their sizes when they are made. A file of them is taken where it was made from the same text,
constants and names as would be compiled here; so one that is left in a checkout does no harm.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gilscope.bpf.compile.object import Compiled, from_json, to_json, with_parameters
from gilscope.bpf.request import Request

__all__ = ["AHEAD", "ahead_file", "ahead_message", "find_ahead", "for_request", "write_ahead"]

AHEAD: Final = Path(__file__).resolve().parents[1] / "ahead"
"""The folder of the files, which a release is built with."""
_FORMAT: Final = 1
"""To be raised with every change of what a file holds."""
_HASH, _RING = 1, 27
"""BPF_MAP_TYPE_ numbers."""
_PAGE_BYTES = 4096


def ahead_message(request: Request, text: str) -> dict[str, Any]:
    """Return what ``bcc_child`` is asked to compile *text* of *request* ahead, and not to load."""
    macros = {
        "COMPILED_AHEAD": 1,
        **request.constants,
        **{name: place for place, name in enumerate(_names(request))},
        # As small as can be: nobody uses these tables.
        **{f"ENTRIES_OF_{table}": 1 for table in request.entries},
        "TABLE_FLAGS": 0,
    }
    return {
        "text": text,
        "cflags": [f"-D{name}={value}" for name, value in macros.items()],
        "programs": dict.fromkeys(request.programs),
        "tables": list(request.tables),
        "rings": list(request.rings),
    }


def for_request(compiled: Compiled, request: Request) -> Compiled:
    """Return what *compiled*, ahead, is for *request*; raises ValueError where it lacks something.

    That is with the values of parameters, and with sizes and flags of tables.
    """
    try:
        values = [request.parameters[name] for name in compiled.parameters]
        entries = {compiled.map_of[name]: count for name, count in request.entries.items()}
        map_of = {name: compiled.map_of[name] for name in (*request.tables, *request.rings)}
        programs = {
            name: with_parameters(compiled.programs[name], values) for name in request.programs
        }
    except KeyError as error:
        raise ValueError(f"nothing was compiled ahead for {error}") from None
    maps = []
    for place, definition in enumerate(compiled.maps):
        count = entries.get(place, definition.max_entries)
        if place in entries and definition.type == _RING:
            count *= _PAGE_BYTES
        flags = request.table_flags if definition.type == _HASH else definition.flags
        maps.append(replace(definition, max_entries=count, flags=flags))
    tables = tuple(table for table in compiled.tables if table["name"] in request.tables)
    return replace(
        compiled, maps=tuple(maps), programs=programs, tables=tables, map_of=map_of, parameters=()
    )


def find_ahead(request: Request, text: str, folder: Path = AHEAD) -> Compiled | None:
    """Return what was compiled ahead from *text* for *request*, or None."""
    try:
        seal, _, content = ahead_file(request, folder).read_text("utf-8").partition("\n")
        return from_json(content) if seal == _seal(request, text, content) else None
    except (OSError, ValueError):
        return None


def write_ahead(compiled: Compiled, request: Request, text: str, folder: Path = AHEAD) -> Path:
    """Write a file that `find_ahead` finds, and return its path; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    content = to_json(replace(compiled, parameters=_names(request)))
    path = ahead_file(request, folder)
    path.write_text(f"{_seal(request, text, content)}\n{content}", "utf-8")
    return path


def ahead_file(request: Request, folder: Path = AHEAD) -> Path:
    """Return where the programs of *request* are, if they were compiled ahead."""
    return folder / f"{request.probe.partition('.')[0]}-{os.uname().machine}.json"


def _names(request: Request) -> tuple[str, ...]:
    return tuple(sorted(request.parameters))


def _seal(request: Request, text: str, content: str) -> str:
    parts: Mapping[str, Any] = {
        "format": _FORMAT,
        "machine": os.uname().machine,
        "text": text,
        "constants": dict(request.constants),
        "parameters": _names(request),
        "entries": sorted(request.entries),
        "content": content,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
