"""docs/stm.md explains every method and every JSON key of the report on a live process."""

from typing import Any

from docs.pages import DOCS, section, words_in_first_cells
from gilscope.reports import stm_live_json
from gilscope.stm_live.model import Library, Method
from stm_recordings import stm_recording

_BY_NAME = {"waits", "inevitable", "restarts", "lost_events"}
"""JSON objects whose keys are kinds or reasons."""
_PAGE = section((DOCS / "stm.md").read_text(), "## Live processes")


def _keys(value: Any) -> set[str]:
    if isinstance(value, list):
        return {key for item in value for key in _keys(item)}
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for key, item in value.items():
        is_by_name = key in _BY_NAME and isinstance(item, dict)
        found |= _keys(list(item.values()) if is_by_name else item)
    return found


def test_json_keys_are_explained() -> None:
    """
    The table has every key of the report, and none that it has not.
    """
    recordings = (stm_recording(), stm_recording(Library.LIBITM, Method.RESTARTS))
    keys = {key for each in recordings for key in _keys(stm_live_json.report(each))}

    assert keys == words_in_first_cells(section(_PAGE, "### JSON of a live process"))


def test_methods_are_explained() -> None:
    """
    The table has every method, and none that there is not.
    """
    assert {method.value for method in Method} == words_in_first_cells(_PAGE.partition("### ")[0])
