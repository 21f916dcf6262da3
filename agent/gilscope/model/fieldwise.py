"""Arithmetic on values that are made of values: field by field, entry by entry."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from gilscope.model.histogram import Histogram

__all__ = ["added", "larger", "left"]

Value = TypeVar("Value")
"""A number, a histogram, or a dataclass, mapping or tuple of such values.

What is missing in a mapping is 0.
"""


def added(one: Value, other: Value) -> Value:
    """Return the sum of both."""
    return cast("Value", _of_both(_add, one, other))


def larger(one: Value, other: Value) -> Value:
    """Return the larger one of each number."""
    return cast("Value", _of_both(max, one, other))


def left(now: Value, earlier: Value) -> Value:
    """Return what *now* has beyond *earlier*, without entries of mappings that are the same."""
    return cast("Value", _left(now, earlier))


def _add(one: int, other: int) -> int:
    return one + other


def _of_both(operation: Any, one: Any, other: Any) -> Any:  # noqa: ANN401 - see Value
    if isinstance(one, int):
        return operation(one, other)
    if isinstance(one, Mapping):
        return {
            key: _of_both(operation, one[key], other[key])
            if key in one and key in other
            else (one if key in one else other)[key]
            for key in {**one, **other}
        }
    if isinstance(one, Histogram):
        return one.with_each(operation, other)
    if isinstance(one, tuple):
        return tuple(_of_both(operation, a, b) for a, b in zip(one, other, strict=True))
    return _fieldwise(lambda a, b: _of_both(operation, a, b), one, other)


def _left(now: Any, earlier: Any) -> Any:  # noqa: ANN401 - likewise
    if isinstance(now, int):
        return now - earlier
    if isinstance(now, Mapping):
        return {
            key: _left(value, earlier[key]) if key in earlier else value
            for key, value in now.items()
            if value != earlier.get(key, 0)
        }
    if isinstance(now, Histogram):
        return now - earlier
    if isinstance(now, tuple):
        return tuple(map(_left, now, earlier))
    return _fieldwise(_left, now, earlier)


def _fieldwise(operation: Any, one: Any, other: Any) -> Any:  # noqa: ANN401 - likewise
    names = [field.name for field in fields(one)]
    kind: Any = type(one)
    return kind(*(operation(getattr(one, name), getattr(other, name)) for name in names))
