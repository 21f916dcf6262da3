"""The view's own help and its man page: they know every key and every column."""

import pytest

from gilscope.top.columns import COLUMNS, Column
from gilscope.top.help_text import HELP
from gilscope.top.layout import fit
from gilscope.top.main_screen import MainScreen
from support.docs.pages import DOCS, section, words_in_first_cells

_FIELDS = section((DOCS / "man" / "gilscope-top.8.md").read_text(), "## FIELDS")
_KEYS = {"slash": "/", "question_mark": "?"}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_columns_are_explained(column: Column) -> None:
    """
    The man page has each column by the words of its head, and the help by the first of them.
    """
    first, second = column.head

    assert f"{first} {second}" in words_in_first_cells(section(_FIELDS, "### Processes and roles"))
    assert any(line.startswith(f"  {first} ") for line in HELP.splitlines())


def test_keys_are_explained() -> None:
    """
    Each key of the main screen is in the help and in the man page.
    """
    keys = section(_FIELDS, "### Keys")
    for binding in MainScreen.BINDINGS:
        key = binding.key  # type: ignore[union-attr]
        shown = _KEYS.get(key, key)

        assert f"`{shown}`" in keys or f"{shown} |" in keys or f" {shown} |" in keys, key
        if shown != "?":
            assert shown in HELP.partition("Upper table")[0], key


def test_help_fits() -> None:
    """
    No line is wider than a terminal of 80 columns with a scroll bar.
    """
    assert HELP.splitlines() == [fit(line, 79) for line in HELP.splitlines()]
