"""Keeps the raw measurements in a file, and reads them again."""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

from bench.measurement import Results

__all__ = ["read_results", "write_results"]


def write_results(results: Results, path: Path) -> None:
    """Write *results* to *path*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(results), indent=1))


def read_results(path: Path) -> Results:
    """Return what `write_results` wrote; raises OSError, ValueError if it is of other form."""
    value = json.loads(path.read_text())
    try:
        results = _read(Results, value)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} was written by another version: measure again") from error
    assert isinstance(results, Results)
    return results


def _read(kind: Any, value: Any) -> Any:  # noqa: ANN401 - JSON, and the types of fields
    """Return *value* as the type *kind*: a dataclass, a tuple, either or None, or a plain value."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _read(hints[name], each) for name, each in value.items()})
    inner = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return None if value is None else _read(inner[0], value)
    if typing.get_origin(kind) is tuple:
        items = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(item, each) for item, each in zip(items, value, strict=True))
    return value
