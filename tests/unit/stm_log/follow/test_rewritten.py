"""What to do about a file that has changed."""

import pytest

from gilscope.stm_log.follow.rewritten import BEGINNING_BYTES, Step, next_step
from support.stm_log.program import played_log

_LOG = played_log("E16", 100, seed=1).content
_OTHER = played_log("E16", 100, seed=2).content
_HOLE = bytes(BEGINNING_BYTES)
_HEADER = 16


def _beginning(content: bytes) -> bytes:
    return content[:BEGINNING_BYTES]


@pytest.mark.parametrize(
    ("position", "size", "now", "step"),
    [
        (1000, 1500, _LOG, Step.READ),
        (1000, 1000, _LOG, Step.WAIT),
        (1000, 0, b"", Step.WAIT),
        (1000, 40, _LOG[:40], Step.WAIT),
        (1000, 500, _LOG, Step.WAIT),
        (1000, 500, _OTHER, Step.BEGIN),
        (1000, 9000, _OTHER, Step.BEGIN),
        (1000, _HEADER, _OTHER[:_HEADER], Step.WAIT),
        (1000, 30, _OTHER[:30], Step.BEGIN),
        (1000, 1500, _HOLE, Step.READ),
        (1000, 900, _HOLE, Step.WAIT),
        (1000, 500, _LOG[500:], Step.REWIND),
    ],
    ids=[
        "grown",
        "as it was",
        "emptied",
        "cut to its beginning",
        "cut short",
        "written anew",
        "written anew and longer",
        "a header that any log has",
        "written anew, one record",
        "emptied under its writer",
        "emptied, and a hole",
        "emptied under one that appends",
    ],
)
def test_step_depends_on_size_and_beginning(
    position: int, size: int, now: bytes, step: Step
) -> None:
    """
    The beginning tells one log from another, and the size whether there is anything to read.
    """
    assert step is next_step(position, _beginning(_LOG), size, _beginning(now))


def test_file_of_which_nothing_was_read_is_read() -> None:
    """
    Whatever is in it, as soon as it has something.
    """
    assert Step.READ is next_step(0, b"", 500, b"#!/bin/sh\n")
    assert Step.WAIT is next_step(0, b"", 0, b"")


def test_beginning_that_is_known_in_part_is_enough() -> None:
    """
    A log may have been read when it had no record yet.
    """
    assert Step.READ is next_step(_HEADER, _LOG[:_HEADER], 500, _beginning(_LOG))
