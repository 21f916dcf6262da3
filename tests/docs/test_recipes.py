"""The page of recipes, against the programs that the tests run."""

import pytest

from gilscope.cli import build_parser
from support.docs.command_blocks import blocks_of, commands_of
from support.docs.pages import DOCS
from support.real.program import Program
from support.real.programs import FEW, MORE

_PAGE = DOCS / "recipes.md"
_COMMANDS = [command for block in blocks_of(_PAGE) for command in commands_of(block)]


@pytest.mark.parametrize("program", [*FEW, *MORE], ids=lambda program: program.name)
def test_program_is_started_as_the_page_says(program: Program) -> None:
    """
    And what it is made of is beside the page, and linked.
    """
    assert {program.line, program.made_by} - {""} <= {*_COMMANDS}
    if program.file:
        assert (DOCS / "examples" / "recipes" / program.file).exists()
        assert f"(examples/recipes/{program.file})" in _PAGE.read_text()


@pytest.mark.parametrize(
    "command", [command for command in _COMMANDS if command.startswith("gilscope ")]
)
def test_command_can_be_typed(command: str) -> None:
    """
    With options that it knows.
    """
    assert build_parser().parse_args(command.split()[1:])


def test_every_program_of_the_page_is_run() -> None:
    """
    There is no other command than gilscope's and those of the programs.
    """
    lines = {line for program in (*FEW, *MORE) for line in (program.line, program.made_by)}

    assert set() == {each for each in _COMMANDS if not each.startswith("gilscope ")} - lines
