"""docs/stm.md explains every method and every JSON key of the report on a live process."""

from gilscope.model.transactions import Library, Method
from gilscope.reports.transactions import json as transactions_json
from support.docs.pages import DOCS, json_keys, section, words_in_first_cells
from support.recordings.transactions import stm_recording

_BY_NAME = {"waits", "collections", "inevitable", "restarts", "lost_events"}
"""JSON objects whose keys are kinds or reasons."""
_PAGE = section((DOCS / "stm.md").read_text(), "## Live processes")


def test_json_keys_are_explained() -> None:
    """
    The table has every key of the report, and none that it has not.
    """
    recordings = (stm_recording(), stm_recording(Library.LIBITM, Method.RESTARTS))
    keys = {
        key for each in recordings for key in json_keys(transactions_json.report(each), _BY_NAME)
    }

    assert keys == words_in_first_cells(section(_PAGE, "### JSON of a live process"))


def test_methods_are_explained() -> None:
    """
    The table has every method, and none that there is not.
    """
    assert {method.value for method in Method} == words_in_first_cells(_PAGE.partition("### ")[0])
