"""The files in dashboards/grafana are what their generator makes."""

from importlib.metadata import version

import pytest
from dashboards.generator.pages import render

from support.deploy.dashboards import DASHBOARDS, FOLDER, Json
from support.docs.pages import first_cells


def test_files_are_current() -> None:
    """
    They are what `make docs` would write now, and there are no others.
    """
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == render()


def test_each_is_in_the_readme() -> None:
    """
    The page beside them links all of them and says what each answers.
    """
    rows = first_cells((FOLDER.parent / "README.md").read_text())

    assert {
        f"[{board['title']}](grafana/{name}.json)" for name, board in DASHBOARDS.items()
    } <= set(rows)


def test_sdk_is_that_of_a_current_grafana() -> None:
    """
    Versions of the SDK with an epoch rank higher, but have the types of an older Grafana.
    """
    assert "0.0.21" == version("grafana-foundation-sdk").removeprefix("v")


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_schema_version(dashboard: Json) -> None:
    """
    The files say which version of Grafana's format they have.
    """
    assert 42 == dashboard["schemaVersion"]
