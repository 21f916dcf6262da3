"""What reports on live transactions say in words."""

from gilscope.text.units import counted

__all__ = ["LOST_WORDS", "lost_words"]

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
