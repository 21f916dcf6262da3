"""What reports on live transactions say in words."""

from collections.abc import Iterator

from gilscope.model.transactions import Library, Method, StmProcess
from gilscope.text.units import counted

__all__ = ["LOST_WORDS", "limits_of", "lost_words"]

LOST_WORDS = {
    "read_fault": ("reason", "lost because memory could not be read"),
    "table_full": ("event", "not counted in full because a table was full"),
    "began_unseen": ("transaction", "begun before the recording, counted without a time"),
    "abandoned": ("transaction", "of which no end was seen"),
    "thread_reused": ("dead thread", "lost because the number was used again"),
}
"""By the reasons of `StmTotals.lost_events`: what is counted, and why it was lost."""


def lost_words(reason: str, count: int) -> str:
    """Return what *count* events are that were lost for *reason*."""
    one, why = LOST_WORDS.get(reason, (reason, ""))
    return f"{counted(count, one)} {why}".rstrip()


def limits_of(process: StmProcess) -> Iterator[str]:
    """Yield what the method does not see, in sentences."""
    method = process.method
    if method is Method.ENTRIES:
        yield "The program does not log: waits, and the time of commits and aborts, are not seen."
        yield "A transaction counts when its thread begins the next one, or ends."
        yield "PYPYSTM=/dev/null shows more."
    elif method is Method.EVENTS_BASIC:
        yield "The version of the program is not known, so waits and conflicts are not seen."
        yield "The time of commits includes waits; that of aborts is not told."
    elif method is Method.BEGINS:
        yield "The program does not log, so aborts, waits and times are not seen."
        yield "A transaction counts when its thread begins the next one, or ends."
        yield "PYPYSTM=/dev/null shows more."
    elif method is Method.NAMES:
        yield "Restarts are not seen: this libitm does not show where they are."
    if process.library is Library.LIBITM:
        yield "The time of a transaction runs from begin to commit, with all of its restarts."
        yield "Hardware transactions cannot pass a probe: tracing makes them run in software."
