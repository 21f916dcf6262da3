"""Writes JSON that both programs and people read: a line for each key and each item of a list."""

import json
from collections.abc import Collection
from typing import Any

__all__ = ["rendered"]


def rendered(report: dict[str, Any], parts: Collection[str] = ()) -> str:
    """Return *report* as JSON: a line for each key, and one for each item of its lists.

    *parts* are the keys of lists whose items have keys and lists of their own.
    """
    return f"{_lines(report, parts, 2)}\n"


def _lines(report: dict[str, Any], parts: Collection[str], indent: int) -> str:
    margin = " " * indent
    lines = (
        f"{margin}{json.dumps(key)}: {_value(key, report[key], parts, indent)}" for key in report
    )
    return "{\n" + ",\n".join(lines) + f"\n{margin[2:]}}}"


def _value(key: str, value: Any, parts: Collection[str], indent: int) -> str:  # noqa: ANN401 - any value of JSON
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    margin = " " * (indent + 2)
    items = (
        _lines(item, parts, indent + 4) if key in parts else json.dumps(item) for item in value
    )
    return "[\n" + ",\n".join(f"{margin}{item}" for item in items) + f"\n{margin[2:]}]"
