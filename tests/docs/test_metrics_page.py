"""docs/metrics.md is what the metric table says."""

import subprocess
import sys

import pytest

from gilscope.metrics.client import CLIENT_FAMILIES
from gilscope.metrics.table import FAMILIES, PROCESS_LABELS, Family
from gilscope.reports import metric_table
from support.docs.pages import DOCS, ROOT

_PAGE = DOCS / "metrics.md"


def test_page_is_current() -> None:
    """
    The page is what `make docs` would write now.
    """
    command = [sys.executable, "-m", "gilscope.reports.metric_table"]
    made = subprocess.run(command, cwd=ROOT / "agent", check=True, capture_output=True, text=True)

    assert made.stdout == _PAGE.read_text()


@pytest.mark.parametrize("family", [*FAMILIES, *CLIENT_FAMILIES], ids=lambda family: family.name)
def test_metric_is_on_the_page(family: Family) -> None:
    """
    Every metric has a row with its type, its help and how to read it.
    """
    (row,) = [line for line in _PAGE.read_text().splitlines() if f"| `{family.name}` |" in line]

    assert row.startswith(f"| `{family.name}` | {family.type} |")
    assert f"| {family.help} | {family.reads_as}" in row


def test_labels_of_the_process_are_written_once() -> None:
    """
    A row names the labels of the process by one word, and its own ones by their names.
    """
    of_process = Family("a_total", "counter", "Some.", "Few.", (*PROCESS_LABELS, "role"))
    of_agent = Family("b", "gauge", "More.", "Many.", ("state", "why"))

    page = metric_table.render([of_process, of_agent]).splitlines()
    rows = [line for line in page if line.startswith(("| `a_total`", "| `b`"))]

    assert [
        "| `a_total` | counter | *process*, `role` | Some. | Few. |",
        "| `b` | gauge | `state`, `why` | More. | Many. |",
    ] == rows


def test_what_is_no_sum_is_said() -> None:
    """
    Of which processes of a service a gauge is.
    """
    gauges = [
        Family(f"c_{together}", "gauge", "Some.", "Few.", PROCESS_LABELS, together)
        for together in ("sum", "max", "min")
    ]
    page = metric_table.render(gauges).splitlines()

    ends = (
        "Few.",
        "Few. Of a service it is the highest of its processes.",
        "Few. Of a service it is the lowest of its processes.",
    )
    assert [f"Some. | {end} |" for end in ends] == [
        line.partition("*process* | ")[2] for line in page if line.startswith("| `c_")
    ]
