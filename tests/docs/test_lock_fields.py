"""docs/locks.md explains every kind of lock, every JSON key and every reason for a loss."""

from gilscope.locks.abi import LockLoss
from gilscope.model.locks import LockKind
from gilscope.naming.lock_words import KIND_WORDS, LOST_WORDS
from gilscope.reports.locks import json as locks_json
from support.docs.pages import DOCS, json_keys, section, words_in_first_cells
from support.recordings.locks import lock_recording

_PAGE = (DOCS / "locks.md").read_text()
_OF_FRAMES = {"function", "file", "line"}
"""They are explained with the frames."""


def test_kinds_are_explained() -> None:
    """
    The table has every kind, and so have the words of the text.
    """
    kinds = {kind.value for kind in LockKind}

    assert kinds == words_in_first_cells(section(_PAGE, "## What is seen"))
    assert set(LockKind) == set(KIND_WORDS)


def test_json_keys_and_reasons_are_explained() -> None:
    """
    The tables have every key of the report and every reason, and none that there is not.
    """
    keys = json_keys(locks_json.report(lock_recording()), {"lost_events"})
    reasons = {loss.value for loss in LockLoss}

    assert (keys - _OF_FRAMES) | reasons == words_in_first_cells(section(_PAGE, "## Report"))
    assert reasons == set(LOST_WORDS)
