"""Makes the pages that `man` opens out of the Markdown beside this file, by go-md2man."""

import re
import subprocess
import sys
from pathlib import Path

import gilscope

__all__ = ["PAGES", "roff", "source"]

_HERE = Path(__file__).parent
PAGES = tuple(sorted(_HERE.glob("*.8.md")))
_TITLE = re.compile(r"\A# (\S+)\((\d)\)\n")
_LINK = re.compile(r"\[([^][]+)\]\((?!https?:)([^()\s]+)\)")
_TABLE = re.compile(r"(?m)^\|.*\n\|[-| ]+\|\n(?:\|.*\n)+")
_BAR = re.compile(r"(?<!\\)\|")
_PAGE = re.compile(r"([a-z-]+)\.(\d)\.md(#.*)?")


def source(page: str) -> str:
    """Return the Markdown of *page* as go-md2man wants it.

    The title says what `man` shows at the edges; tables, which are wider than a terminal, become
    lists; and links lead to other pages or nowhere, as `man` follows none.
    """
    version = f"gilscope {gilscope.__version__}"
    titled = _TITLE.sub(
        lambda found: (
            f'# {found[1].upper()} {found[2]} "" "{version}" "System Manager\'s Manual"\n'
        ),
        page,
    )
    return _LINK.sub(_words, _TABLE.sub(_list, titled))


def roff(page: Path) -> str:
    """Return *page* in the language of `man`."""
    command = ["/usr/bin/go-md2man"]
    made = subprocess.run(
        command, input=source(page.read_text()), capture_output=True, text=True, check=True
    )
    return made.stdout


def _list(table: re.Match[str]) -> str:
    head, _, *rows = [_cells(line) for line in table[0].splitlines()]
    items = []
    for first, *others in rows:
        # Where there are more than two columns, each says what it is.
        named = [
            cell if len(others) == 1 else f"{name}: {cell}"
            for name, cell in zip(head[1:], others, strict=True)
            if cell
        ]
        items.append(f"{first or ' '}\n: {'; '.join(named) or ' '}\n")
    return "\n" + "\n".join(items) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(line.strip()[1:-1])]


def _words(link: re.Match[str]) -> str:
    text, target = link[1], link[2]
    page = _PAGE.fullmatch(target)
    if page is None:
        return text
    name = f"{page[1]}({page[2]})"
    return text if name in text else f"{text} ({name})"


def main() -> int:
    """Write them all."""
    folder = _HERE / "man8"
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        (folder / page.name.removesuffix(".md")).write_text(roff(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
