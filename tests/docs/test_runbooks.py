"""The runbooks: what they tell to ask and to type exists, and each ends with what fixes it."""

import re
import shlex
from pathlib import Path

import pytest

from gilscope.cli import build_parser
from support.docs.pages import DOCS, code_blocks, section
from support.prometheus.rules import known_labels, labels_of

_RUNBOOKS = sorted((DOCS / "runbooks").glob("*.md"))
_OTHER_COMMANDS = ("curl", "gdb")

_each_runbook = pytest.mark.parametrize("page", _RUNBOOKS, ids=lambda path: path.stem)


def _lines(page: Path) -> list[str]:
    """Return the lines of indented blocks."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


def _commands(page: Path) -> list[str]:
    return [line for line in _lines(page) if line.startswith("gilscope ")]


def _expressions(page: Path) -> list[str]:
    others = ("gilscope ", *_OTHER_COMMANDS)
    return [line for line in _lines(page) if not line.startswith(others)]


@_each_runbook
def test_it_begins_with_the_graph_and_ends_fixed(page: Path) -> None:
    """
    The first part is the graph, one shows what to change, and the last ones say how to see it.
    """
    headings = re.findall(r"(?m)^## (.*)$", page.read_text())

    assert "The graph" == headings[0]
    assert headings.index("Fix it") < headings.index("Is it fixed?")
    assert list(code_blocks(section(page.read_text(), "## Fix it"), "diff"))


@_each_runbook
def test_its_queries_ask_for_what_is_exported(page: Path) -> None:
    """
    Every expression names series and labels that gilscope exports or the rules record.
    """
    expressions = _expressions(page)

    assert expressions
    for expression in expressions:
        labels_of(expression, known_labels())


@_each_runbook
def test_what_it_names_exists(page: Path) -> None:
    """
    So does every metric in the text.
    """
    names = set(re.findall(r"`([\w:]*gilscope_[\w:]+)", page.read_text()))
    known = {name.removesuffix("_bucket") for name in known_labels()}

    assert set() == names - known


@_each_runbook
def test_its_commands_can_be_typed(page: Path) -> None:
    """
    Each command of gilscope parses, in blocks and in changes alike.
    """
    changed = [
        line[1:]
        for block in code_blocks(page.read_text(), "diff")
        for line in block.splitlines()
        if line[1:].startswith("gilscope ")
    ]
    for line in (*_commands(page), *changed):
        words = shlex.split(line.replace("PID", "4711"))[1:]

        assert build_parser().parse_args(words)
