"""Holds the unit tests to the package: where a module is, there is its test."""

from pathlib import PurePath

import pytest

from support.paths import AGENT, TESTS

_UNIT = TESTS / "unit"
_OF_THE_WHOLE = {"test_layers.py", "test_mirror.py"}
"""They look at all of the package."""
_OF_TWO_MODULES = {
    "reports/doctor/test_json_and_text.py",
    "reports/stm_log/test_interval_text_and_json.py",
    "reports/transactions/test_text_and_json.py",
}
"""They show two forms of one thing side by side."""
_TESTS = sorted(path.relative_to(_UNIT) for path in _UNIT.rglob("test_*.py"))


def _stems(folder: PurePath) -> list[str]:
    """Return the names of the modules in that folder of the package."""
    return [path.stem for path in (AGENT / "gilscope" / folder).glob("*.py")]


@pytest.mark.parametrize("test", _TESTS, ids=str)
def test_a_test_stands_where_its_module_does(test: PurePath) -> None:
    """
    ``unit/ROOM/test_MODULE.py`` or ``test_MODULE_WHAT.py``, and ``ROOM/MODULE.py`` is there.
    """
    if str(test) in _OF_THE_WHOLE | _OF_TWO_MODULES:
        return
    name = test.stem.removeprefix("test_")

    found = [stem for stem in _stems(test.parent) if name == stem or name.startswith(f"{stem}_")]

    assert found, f"no module of gilscope/{test.parent} that {test.name} could be about"


def test_a_folder_of_tests_has_tests_and_what_they_are_given() -> None:
    """
    What tests share has its place in ``tests/support``.
    """
    others = [path for path in _UNIT.rglob("*.py") if not path.name.startswith("test_")]

    assert {"conftest.py"} == {path.name for path in others}
