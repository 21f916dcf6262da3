"""Stacks that change while they are read."""

import pytest

from gilscope.model.stack import Stack, StackState
from gilscope.process.remote_read import LimitExceeded, TornRead
from gilscope.runtimes.torn_stacks import settled
from support.recordings.gil import CRUNCHING

_TORN = Stack((), StackState.TORN)


@pytest.mark.parametrize(("torn", "expected"), [(0, CRUNCHING), (7, CRUNCHING), (8, _TORN)])
def test_it_is_read_again_as_long_as_it_changes(torn: int, expected: Stack) -> None:
    """
    Eight times at the most.
    """
    left = [TornRead("it has changed")] * torn

    def read() -> Stack:
        if left:
            raise left.pop()
        return CRUNCHING

    assert expected == settled(read)


def test_one_that_is_too_long_is_not_read_again() -> None:
    """
    It would be as long the next time.
    """
    tries: list[int] = []

    def read() -> Stack:
        tries.append(1)
        raise LimitExceeded("a thousand frames")

    assert (_TORN, [1]) == (settled(read), tries)
