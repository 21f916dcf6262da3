"""The commands that the documentation tells users to type."""

import re
import shlex
from pathlib import Path

import pytest

from gilscope.cli import build_parser
from support.docs.pages import DOCS, MAN_PAGES, ROOT, code_blocks, section, table_rows
from support.interpreters.known import ALL_CPYTHON_27, ALL_INTERPRETERS

_README = (ROOT / "README.md").read_text()
_LINES = [line for block in code_blocks(_README, "(?:sh|console)") for line in block.splitlines()]
_OF_GILSCOPE = [line for line in _LINES if line.startswith("gilscope ")]

_EXAMPLES = [*MAN_PAGES, *sorted((DOCS / "examples").glob("*.txt"))]


def _parses(words: list[str]) -> bool:
    try:
        build_parser().parse_args(words)
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("line", _LINES)
def test_command_can_be_typed(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each line under a shell's fence is a command that exists, with options that it knows.
    """
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(line)
    match Path(program).name:
        case "gilscope":
            assert _parses(arguments)
        case "make":
            targets = re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text())
            assert set(arguments) <= set(targets)
        case "apt-get":
            assert "install" == arguments[0]
            set_up = (ROOT / "deploy" / "setup" / "install.sh").read_text()
            for package in arguments[1:]:
                assert package in set_up or package.startswith("linux-headers-")
        case "python3":
            assert ["-m", "venv"] == arguments[:2]
        case "pip":
            assert ["install", "."] == arguments
        case _:
            pytest.fail(f"nobody checks what {program} does")


@pytest.mark.parametrize("page", _EXAMPLES, ids=lambda path: path.name)
def test_commands_in_examples_can_be_typed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Each command of gilscope at a prompt has options that it knows.
    """
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"(?m)^ *# (?:setpriv \S+ )?gilscope (.*?)(?: \| .*)?$", page.read_text())

    assert [] != commands
    assert [] == [words for words in commands if not _parses(shlex.split(words))]


def test_readme_shows_every_use() -> None:
    """
    One block for each: a recording, serving, and doctor.
    """
    assert ["record", "serve", "doctor"] == [line.split()[1] for line in _OF_GILSCOPE]


def test_supported_interpreters_are_those_that_are_tested() -> None:
    """
    The table has a version of CPython in a row for each build that the live tests trace.
    """
    kinds = {
        "debian": "static",
        "debian-shared": "libpython3",
        "pyenv": "pyenv",
        "bytedeco": "Byte",
    }
    tested: dict[str, set[str]] = {}
    for parameter in (*ALL_INTERPRETERS, *ALL_CPYTHON_27):
        build, minor, *rest = str(getattr(parameter, "id", "")).split("-")
        kind = kinds[f"{build}-shared" if "shared" in rest else build]
        tested.setdefault(kind, set()).add(minor)
    rows = table_rows(section((DOCS / "support.md").read_text(), "## What it supports"))

    listed = {
        kind: {minor for row in rows if kind in row[0] for minor in row[1].split(", ")}
        for kind in tested
    }

    assert tested == listed
