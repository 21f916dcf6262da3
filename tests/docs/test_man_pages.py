"""Man pages: one for each command, with what its parser and the table of errors say."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope import errors
from gilscope.cli import COMMANDS, build_parser
from support.docs.pages import DOCS, MAN_PAGES, section, table_rows

_SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "FIELDS",
    "EXAMPLES",
    "OVERHEAD",
    "CAVEATS",
    "EXIT STATUS",
    "SEE ALSO",
]
_UNEXPECTED, _USAGE = 1, 2
_OF_A_COMMAND_THAT_CANNOT_START = {126, 127}


def _page(command: str = "") -> str:
    return (DOCS / "man" / f"gilscope{command and '-'}{command}.8.md").read_text()


def _parser(command: str) -> argparse.ArgumentParser:
    if not command:
        return build_parser()
    parser = argparse.ArgumentParser()
    COMMANDS[command].prepare_parser(parser)
    return parser


def _declared(command: str) -> set[tuple[str, str]]:
    """Return how each option is written, and its help text."""
    return {
        (_written(action), str(action.help).replace("%%", "%"))
        for action in _actions(_parser(command))
    }


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options of *parser*, and those of a command's own subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse tells it nowhere else
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - it has no other name
            yield action
        elif action.dest != "name":
            for subparser in action.choices.values():
                yield from _actions(subparser)


def _written(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(action.choices) + "}" if action.choices else "")
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option} {value}`".replace(" `", "`") for option in action.option_strings)


def _exit_codes(page: str) -> dict[int, str]:
    return {int(row[0]): row[1] for row in table_rows(section(page, "## EXIT STATUS"))}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_options_are_those_of_the_parser(command: str) -> None:
    """
    OPTIONS lists every option as --help writes it, with the same help text, and no other.
    """
    documented = {(row[0], row[1]) for row in table_rows(section(_page(command), "## OPTIONS"))}

    assert _declared(command) == documented


def test_commands_are_listed_with_their_summaries() -> None:
    """
    The first page names every command as --help does, and links to its page.
    """
    rows = table_rows(section(_page(), "## DESCRIPTION"))[: len(COMMANDS)]

    assert [
        (f"[`{name}`](gilscope-{name}.8.md)", command.SUMMARY) for name, command in COMMANDS.items()
    ] == rows


@pytest.mark.parametrize("command", COMMANDS)
def test_name_line_is_the_summary(command: str) -> None:
    """
    NAME says in the command's own words what it does.
    """
    assert f"gilscope-{command} - {COMMANDS[command].SUMMARY}" == (
        section(_page(command), "## NAME").strip()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_annotated_example(command: str) -> None:
    """
    A whole run with its explanation lies beside the man page, which links to it.
    """
    example = (DOCS / "examples" / f"{command}.txt").read_text()

    assert example.startswith(f"Demonstrations of gilscope {command}.\n")
    assert "\nUSAGE:\n" in example
    assert f"(../examples/{command}.txt)" in section(_page(command), "## EXAMPLES")


@pytest.mark.parametrize("page", MAN_PAGES, ids=lambda path: path.name)
def test_sections_come_in_the_usual_order(page: Path) -> None:
    """
    Readers of man pages find what they look for where it always is.
    """
    found = re.findall(r"(?m)^## (.*)$", page.read_text())
    is_command = page.name != "gilscope.8.md"

    assert [name for name in _SECTIONS if name in found] == [
        name for name in found if name in _SECTIONS
    ]
    assert not is_command or found == _SECTIONS


def test_exit_codes_are_those_of_the_errors() -> None:
    """
    The first page has every exit code that there is, and no other.
    """
    raised = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.GilscopeError)
    }

    assert {0, _UNEXPECTED, _USAGE} | raised == set(_exit_codes(_page()))


def test_help_lists_the_same_exit_codes() -> None:
    """
    The epilog of --help and the man page know the same ones.
    """
    codes = re.findall(r"(?:^|\s)(\d+) [a-zG]", build_parser().epilog or "")

    assert sorted(_exit_codes(_page())) == [int(code) for code in codes]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_code_means_the_same_for_every_command(command: str) -> None:
    """
    The pages of the commands repeat the words of the first; record adds those of a shell.
    """
    everywhere = _exit_codes(_page())
    own = _exit_codes(_page(command))
    shells = _OF_A_COMMAND_THAT_CANNOT_START if command == "record" else set()

    assert shells == set(own) - set(everywhere)
    assert {code: words for code, words in everywhere.items() if code in own} == {
        code: words for code, words in own.items() if code not in shells
    }
