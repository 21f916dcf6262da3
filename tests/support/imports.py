"""What the modules of gilscope import, as their sources say it."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import Final

from support.paths import AGENT

__all__ = ["MODULES", "imported_names", "own_imports"]

_PACKAGE = AGENT / "gilscope"


def _module_name(path: PurePath) -> str:
    parts = path.relative_to(_PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES: Final[Mapping[str, Path]] = {
    _module_name(path): path for path in sorted(_PACKAGE.rglob("*.py"))
}
"""Dotted name below gilscope (empty: the package itself), and where it is."""


def imported_names(source: str) -> Iterator[str]:
    """Yield the dotted names that *source* imports, at its top or later."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def own_imports(module: str) -> frozenset[str]:
    """Return the modules of gilscope that *module* imports; the package itself is not counted."""
    found = (_own_module(name) for name in imported_names(MODULES[module].read_text()))
    return frozenset(name for name in found if name)


def _own_module(imported: str) -> str | None:
    if imported.partition(".")[0] != "gilscope":
        return None
    name = imported.removeprefix("gilscope").lstrip(".")
    return name if name in MODULES else name.rpartition(".")[0]
