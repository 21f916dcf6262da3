"""Makes what completes the words of gilscope's command line in a shell, from its own parser."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import shtab

from gilscope.cli import build_parser

__all__ = ["FILES", "completions"]

FILES: Mapping[str, str] = {"bash": "gilscope", "zsh": "_gilscope", "fish": "gilscope.fish"}
"""By shell, the name under which it looks for them."""
_FOLDER = Path(__file__).parent


def completions(shell: str) -> str:
    """Return the script for *shell*."""
    parser = build_parser()
    for action in _actions(parser):
        if action.metavar == "FILE" or str(action.metavar).endswith("[=FILE]"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # by shtab's contract
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # likewise
    return f"{shtab.complete(parser, shell).rstrip()}\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            for below in action.choices.values():
                yield from _actions(below)


def main() -> int:
    """Write them all."""
    for shell, name in FILES.items():
        (_FOLDER / name).write_text(completions(shell), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
