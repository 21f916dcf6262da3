"""Decides what to do about a log that has changed: read on, begin anew, or wait."""

from enum import Enum

from gilscope.stm_log.reader import is_log

__all__ = ["BEGINNING_BYTES", "Step", "next_step"]

BEGINNING_BYTES = 64
"""How many bytes tell one log from another: its header, and the first record with its time."""


class Step(Enum):
    """What a reader that has come to some place in a file does next."""

    WAIT = "wait"
    """Nothing is to be read here."""
    READ = "read"
    """From where it is, on to the end."""
    BEGIN = "begin"
    """The file is another log now: what was counted is kept, and a new reader begins at 0."""
    REWIND = "rewind"
    """The same log continues at 0: a writer that appends has had its file emptied."""


def next_step(position: int, known: bytes, size: int, beginning: bytes) -> Step:
    """Return what to do at *position* in a file of *size* bytes that begins with *beginning*.

    *known* is what it began with so far as it has been read; both have at most BEGINNING_BYTES.
    """
    if not size:
        return Step.WAIT
    common = min(len(known), len(beginning))
    if known[:common] == beginning[:common]:
        # A file that was cut short: a writer that has it open continues where it was.
        return Step.READ if size > position else Step.WAIT
    if not any(beginning):
        # It was emptied under its writer, which has gone on where it was; in front there is a hole.
        return Step.READ if size > position else Step.WAIT
    if is_log(beginning):
        return Step.BEGIN
    return Step.REWIND
