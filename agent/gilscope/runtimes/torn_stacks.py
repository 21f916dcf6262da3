"""Reads a stack of a thread that runs on meanwhile."""

from collections.abc import Callable
from typing import Final

from gilscope.model.stack import Stack, StackState
from gilscope.process.remote_read import LimitExceeded, TornRead

__all__ = ["settled"]

_TRIES: Final = 8
"""A generator is entered and left within a microsecond: the next try finds it inside."""
_TORN: Final = Stack((), StackState.TORN)


def settled(read: Callable[[], Stack]) -> Stack:
    """Return what *read* returns as soon as it is no TornRead, else a torn stack.

    What is longer than may be read is torn at once. Any other error is passed on.
    """
    for _ in range(_TRIES):
        try:
            return read()
        except LimitExceeded:
            break
        except TornRead:
            continue
    return _TORN
