"""Interpreters that a live test names, where one of each kind is enough."""

import pytest

from support.interpreters.known import Interpreter, Unavailable, find_interpreter

__all__ = ["build"]


def build(name: str) -> Interpreter:
    """Return the interpreter *name* of the table; skips the test where it cannot be had."""
    try:
        return find_interpreter(name)
    except Unavailable as reason:
        pytest.skip(f"{name}: {reason}")
