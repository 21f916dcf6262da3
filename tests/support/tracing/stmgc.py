"""The stand-in that behaves like a PyPy-STM with many threads, and holding a report against it."""

import json
from typing import Any

from support.tracing.transactions import RPYTHON

__all__ = ["GENERATIONS", "STMGC", "assert_is_within", "truth_of"]

GENERATIONS = {"C7": ("-DC7",), "E16": ()}
"""How to compile ``stmgc.c`` for a numbering of events."""

STMGC = {
    f"{generation}-{link}": (*RPYTHON[link], *flags)
    for generation, flags in GENERATIONS.items()
    for link in ("pie", "fixed-stripped")
}
"""Ways to compile it: by generation, and with symbols or without."""


def truth_of(answer: str) -> dict[str, Any]:
    """Return what the program says of itself."""
    return dict(json.loads(answer))


def assert_is_within(seconds: float, truth: dict[str, int], what: str) -> None:
    """Assert that a sum lies where the clock readings around its events say that it must."""
    found_ns = round(seconds * 1e9)

    assert truth["least_ns"] <= found_ns <= truth["most_ns"], what
