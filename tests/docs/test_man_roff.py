"""The pages that `man` opens are those of the Markdown, and it opens them."""

import subprocess
from pathlib import Path

import pytest

from support.docs.pages import DOCS
from support.scripts import script

_MAKE = script(DOCS / "man" / "make.py")
_PAGES: tuple[Path, ...] = _MAKE.PAGES


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_page_is_current(page: Path) -> None:
    """
    It is what `make docs` would write now.
    """
    made = DOCS / "man" / "man8" / page.name.removesuffix(".md")

    assert _MAKE.roff(page) == made.read_text()


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_man_opens_it(page: Path) -> None:
    """
    Without a complaint, within 80 columns but for what is typed as it stands.
    """
    made = DOCS / "man" / "man8" / page.name.removesuffix(".md")
    command = ["man", "--warnings", "-l", str(made)]
    environment = {"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    opened = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    name = page.name.removesuffix(".8.md")

    assert "" == opened.stderr
    assert opened.stdout.lstrip().startswith(f"{name.upper()}(8)")
    assert "](" not in opened.stdout
    assert "|" not in "".join(
        line for line in opened.stdout.splitlines() if line.startswith("       -")
    ).replace("|full", "")


def test_tables_become_lists() -> None:
    """
    Of two columns the second is the text; of more, each says what it is.
    """
    two = "| option | what it does |\n| --- | --- |\n| `-p PID` | this \\| that |\n"
    three = "| a | b | c |\n| --- | --- | --- |\n| x | y | z |\n"

    assert "\n`-p PID`\n: this | that\n\n" == _MAKE.source(two)
    assert "\nx\n: b: y; c: z\n\n" == _MAKE.source(three)


def test_links_become_names_of_pages() -> None:
    """
    What leads into the repository has no place where `man` runs.
    """
    assert "see gilscope(8) and role (gilscope(8)) and costs" == _MAKE.source(
        "see [gilscope(8)](gilscope.8.md#words) and [role](gilscope.8.md) and [costs](../cost.md)"
    )
    assert "[x](https://example.org/)" == _MAKE.source("[x](https://example.org/)")
